package store

import "context"

// Migration is the text of a migration in a dialect.
func Migration(name, text string) (string, error) {
	d := sqlite()
	if name == "postgres" {
		d = postgres()
	}
	out, err := d.render(text)
	return string(out), err
}

// Rows counts the rows of a table.
func (s *Store) Rows(ctx context.Context, table string) (n int, err error) {
	err = s.read(ctx).get(`SELECT COUNT(*) FROM `+table, nil, []any{&n})
	return n, err
}
