package demo

import "os/exec"

// Chromium finds a browser: the one that is named, or the first of the usual names if none is; false if there is none.
func Chromium(named string) (path string, found bool) {
	if named != "" {
		return named, true
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
}
