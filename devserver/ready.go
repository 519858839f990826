package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// readyFile is the path of the file that holds the frontend address while the server accepts requests. Empty: none.
type readyFile string

// write makes the file appear complete: who polls for it never reads half an address.
func (f readyFile) write(addr string) error {
	if f == "" {
		return nil
	}
	temp := string(f) + ".new"
	if err := os.WriteFile(temp, []byte(addr+"\n"), 0o600); err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	if err := os.Rename(temp, string(f)); err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	return nil
}

// remove deletes the file, also one that a killed server left behind.
func (f readyFile) remove() error {
	if f == "" {
		return nil
	}
	if err := os.Remove(string(f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove ready file: %w", err)
	}
	return nil
}
