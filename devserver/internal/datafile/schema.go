package datafile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver that the server itself uses
)

const versionTable = "tarry_devserver"

// VersionError says that a file belongs to another server version, or to no server at all.
type VersionError struct {
	Path string
	Has  string // empty when the file records none
	Want string
}

// Error implements error.
func (e *VersionError) Error() string {
	if e.Has == "" {
		return fmt.Sprintf("%s was not made by this dev server: name another file with --db", e.Path)
	}
	return fmt.Sprintf("%s belongs to Temporal server %s and this is %s, which cannot convert it: "+
		"delete it, or name another file with --db", e.Path, e.Has, e.Want)
}

// Resolve returns the absolute path of a data file with links followed, so that two names of one file share a lock.
// The directory is made if it does not exist.
func Resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", path, err)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target, nil
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make directory of data file: %w", err)
	}
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", path, err)
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

// Prepare makes the file at path ready to be opened by a server of the given version. A missing or empty file is
// built: setup passes the statements that create the tables to exec. They run in a temporary file that replaces path
// only when it is complete, so that a kill at any moment leaves either no file or a whole one. The caller holds the lock.
func Prepare(ctx context.Context, path, version string, setup func(exec func(statement string) error) error) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0:
		return build(ctx, path, version, setup)
	case err != nil:
		return fmt.Errorf("look at data file: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file: name another one with --db", path)
	}
	return checkVersion(ctx, path, version)
}

// URI returns path in the form that SQLite wants after "file:".
func URI(path string) string {
	return (&url.URL{Path: path}).EscapedPath()
}

// Checkpoint moves what the write-ahead log holds into the file at path, so that the one file is complete and can be
// copied. Without it nothing is lost: the next start does the same.
func Checkpoint(ctx context.Context, path string) error {
	return withDB(path, "mode=rw&_pragma=busy_timeout(1000)", func(db *sql.DB) error {
		if _, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			return fmt.Errorf("checkpoint %s: %w", path, err)
		}
		return nil
	})
}

func build(ctx context.Context, path, version string, setup func(exec func(string) error) error) error {
	temp := path + ".new"
	// A log that outlived its database would be replayed into the new one.
	for _, name := range []string{temp, temp + "-wal", temp + "-shm", path + "-journal", path + "-wal", path + "-shm"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove left-over: %w", err)
		}
	}
	file, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make data file: %w", err)
	}
	defer file.Close()
	// No journal and no syncs while building: a build that is cut short is thrown away whole.
	if err := withDB(temp, "mode=rw&_pragma=journal_mode(off)&_pragma=synchronous(off)", func(db *sql.DB) error {
		return fill(ctx, db, version, setup)
	}); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("sync data file: %w", err)
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("make data file: %w", err)
	}
	return syncDir(filepath.Dir(path))
}

func fill(ctx context.Context, db *sql.DB, version string, setup func(exec func(string) error) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after Commit there is nothing to roll back
	if err := setup(func(statement string) error {
		_, err := tx.ExecContext(ctx, statement)
		return err //nolint:wrapcheck // setup adds the statement
	}); err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	if _, err := tx.ExecContext(ctx, "CREATE TABLE "+versionTable+" (server_version TEXT NOT NULL)"); err != nil {
		return fmt.Errorf("record version: %w", err)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO "+versionTable+" VALUES (?)", version); err != nil {
		return fmt.Errorf("record version: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	return nil
}

func checkVersion(ctx context.Context, path, version string) error {
	return withDB(path, "mode=rw&_pragma=busy_timeout(5000)", func(db *sql.DB) error {
		var tables int
		query := "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?"
		if err := db.QueryRowContext(ctx, query, versionTable).Scan(&tables); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		var has string
		if tables == 1 {
			if err := db.QueryRowContext(ctx, "SELECT server_version FROM "+versionTable).Scan(&has); err != nil {
				return fmt.Errorf("read version of %s: %w", path, err)
			}
		}
		if has != version {
			return &VersionError{Path: path, Has: has, Want: version}
		}
		return nil
	})
}

func withDB(path, params string, use func(*sql.DB) error) error {
	db, err := sql.Open("sqlite", "file:"+URI(path)+"?"+params)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	if err := use(db); err != nil {
		_ = db.Close()
		return err
	}
	if err := db.Close(); err != nil {
		return fmt.Errorf("close %s: %w", path, err)
	}
	return nil
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}
