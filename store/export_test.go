package store

// Migration is the text of a migration in a dialect.
func Migration(name, text string) (string, error) {
	d := sqlite()
	if name == "postgres" {
		d = postgres()
	}
	out, err := d.render(text)
	return string(out), err
}
