package oauth

// CleanCode makes a provider's error code safe to log and show.
func CleanCode(code string) string { return cleanCode(code) }
