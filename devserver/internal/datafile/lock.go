package datafile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Lock is the right to use a file. It is advisory, and the kernel releases it when the process ends, however it ends.
type Lock struct {
	file *os.File
}

// InUseError says that another process holds the lock.
type InUseError struct {
	Path string
	PID  int // 0 when the holder has not written it yet
}

// Error implements error.
func (e *InUseError) Error() string {
	holder := "another process"
	if e.PID != 0 {
		holder = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("%s is in use by %s: stop it, or name another file with --db", e.Path, holder)
}

// Acquire takes the lock of the data file at path without waiting. The lock is held on a file beside it that is never
// deleted: with the data file itself, which is renamed into place, two processes could lock two different files.
func Acquire(path string) (*Lock, error) {
	file, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := flock(file); err != nil {
		defer file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &InUseError{Path: path, PID: readPID(file)}
		}
		return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	lock := &Lock{file: file}
	if err := lock.writePID(); err != nil {
		lock.Release()
		return nil, err
	}
	return lock, nil
}

// Release gives the lock up.
func (l *Lock) Release() {
	// Closing the descriptor releases the lock; an error here leaves nothing to do.
	_ = l.file.Truncate(0)
	_ = l.file.Close()
}

func (l *Lock) writePID() error {
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("write lock file: %w", err)
	}
	if _, err := l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("write lock file: %w", err)
	}
	return nil
}

func flock(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err //nolint:wrapcheck // Acquire adds the operation
		}
	}
}

func readPID(file *os.File) int {
	text, err := io.ReadAll(io.LimitReader(file, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}
