package datafile_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tarry/devserver/internal/datafile"

	"github.com/stretchr/testify/require"
)

func createNotes(exec func(string) error) error { return exec("CREATE TABLE notes (text TEXT)") }

// open opens the file as the server does.
func open(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+datafile.URI(path)+"?mode=rw&_pragma=journal_mode%3Dwal")
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func notes(t *testing.T, path string) int {
	t.Helper()
	db := open(t, path)
	defer db.Close()
	var count int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM notes").Scan(&count))
	return count
}

func TestPrepareBuildsOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"state.db", "with space.db", "50%.db", "a?b#c&d=e.db", "über.db"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			require.NoError(t, datafile.Prepare(t.Context(), path, "1", createNotes))
			_, err := open(t, path).ExecContext(t.Context(), "INSERT INTO notes VALUES ('kept')")
			require.NoError(t, err)

			require.NoError(t, datafile.Prepare(t.Context(), path, "1", func(func(string) error) error {
				return errors.New("built again")
			}))
			require.Equal(t, 1, notes(t, path))
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			for _, entry := range entries {
				require.True(t, strings.HasPrefix(entry.Name(), name), "stray file %s", entry.Name())
			}
		})
	}
}

func TestPrepareTakesAnEmptyFileForNone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, datafile.Prepare(t.Context(), path, "1", createNotes))
	require.Zero(t, notes(t, path))
}

func TestPrepareLeavesNothingHalf(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	broken := errors.New("broken")
	err := datafile.Prepare(t.Context(), path, "1", func(exec func(string) error) error {
		return errors.Join(createNotes(exec), broken)
	})
	require.ErrorIs(t, err, broken)
	require.NoFileExists(t, path)
	require.NoError(t, datafile.Prepare(t.Context(), path, "1", createNotes))
	require.Zero(t, notes(t, path))
}

// A database that is deleted while its write-ahead log stays must not come back inside the next one.
func TestPrepareDropsTheLogOfADeletedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	require.NoError(t, datafile.Prepare(t.Context(), path, "1", createNotes))
	db := open(t, path)
	_, err := db.ExecContext(t.Context(), "INSERT INTO notes VALUES ('old')")
	require.NoError(t, err)
	log, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	require.NotEmpty(t, log)
	require.NoError(t, db.Close())
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path+"-wal", log, 0o600)) //nolint:gosec // a test's own directory

	require.NoError(t, datafile.Prepare(t.Context(), path, "1", createNotes))
	require.Zero(t, notes(t, path))
}

func TestPrepareRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old, stranger, text := filepath.Join(dir, "old.db"), filepath.Join(dir, "stranger.db"), filepath.Join(dir, "text.db")
	require.NoError(t, datafile.Prepare(t.Context(), old, "1.29.0", createNotes))
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("not a database\n", 100)), 0o600))
	require.NoError(t, os.WriteFile(stranger, nil, 0o600))
	_, err := open(t, stranger).ExecContext(t.Context(), "CREATE TABLE notes (text TEXT)")
	require.NoError(t, err)

	var version *datafile.VersionError
	err = datafile.Prepare(t.Context(), old, "1.30.4", createNotes)
	require.ErrorAs(t, err, &version)
	require.Equal(t, datafile.VersionError{Path: old, Has: "1.29.0", Want: "1.30.4"}, *version)
	require.ErrorContains(t, err, "1.29.0")

	err = datafile.Prepare(t.Context(), stranger, "1.30.4", createNotes)
	require.ErrorAs(t, err, &version)
	require.ErrorContains(t, err, "was not made by this dev server")

	require.ErrorContains(t, datafile.Prepare(t.Context(), text, "1.30.4", createNotes), "not a database")
	require.ErrorContains(t, datafile.Prepare(t.Context(), dir, "1.30.4", createNotes), "not a regular file")
}

func TestLockIsExclusive(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	lock, err := datafile.Acquire(path)
	require.NoError(t, err)

	_, err = datafile.Acquire(path)
	var inUse *datafile.InUseError
	require.ErrorAs(t, err, &inUse)
	require.Equal(t, datafile.InUseError{Path: path, PID: os.Getpid()}, *inUse)

	lock.Release()
	lock, err = datafile.Acquire(path)
	require.NoError(t, err)
	lock.Release()
}

func TestResolve(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	file, link := filepath.Join(dir, "state.db"), filepath.Join(dir, "link.db")

	got, err := datafile.Resolve(file)
	require.NoError(t, err)
	require.Equal(t, file, got)

	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Symlink(file, link))
	got, err = datafile.Resolve(link)
	require.NoError(t, err)
	require.Equal(t, file, got)

	got, err = datafile.Resolve(filepath.Join(dir, "new", "state.db"))
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "new", "state.db"), got)
	require.DirExists(t, filepath.Join(dir, "new"))
}
