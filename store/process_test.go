package store_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/session"
	"tarry/store"
)

// The test binary runs itself as another process when these are set.
const (
	helperRole = "TARRY_STORE_TEST_ROLE"
	helperPath = "TARRY_STORE_TEST_PATH"
)

func helper(role string) int {
	ctx := context.Background()
	path := os.Getenv(helperPath)
	err := func() error {
		switch role {
		case "open":
			return helperOpen(ctx, path)
		case "write":
			return helperWrite(ctx, path)
		case "hold":
			return helperHold(ctx, path)
		default:
			return fmt.Errorf("no role %q", role)
		}
	}()
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	return 0
}

// helperOpen opens a file that others open at the same moment.
func helperOpen(ctx context.Context, path string) error {
	s, err := store.Open(ctx, path)
	if err != nil {
		return err
	}
	value, err := s.Check(ctx, "keyset", func() ([]byte, error) { return fmt.Appendf(nil, "of process %d", os.Getpid()), nil })
	if err != nil {
		return err
	}
	fmt.Println("value", string(value))
	return s.Close()
}

// helperWrite appends until it is killed, and says what is committed.
func helperWrite(ctx context.Context, path string) error {
	s, err := store.Open(ctx, path)
	if err != nil {
		return err
	}
	parent := []string{}
	for i := 0; ; i++ {
		a, b := fmt.Sprintf("p%d-%da", os.Getpid(), i), fmt.Sprintf("p%d-%db", os.Getpid(), i)
		add := session.Append{
			Owner: ann, Session: "s", Run: fmt.Sprint("run", os.Getpid()),
			Events: []session.NewEvent{model(a, parent...), model(b, a)},
			Calls:  []session.Call{{ID: "call" + a, Invocation: inv, Event: b, Args: []byte("{}")}},
		}
		if _, err := s.Append(ctx, add); err != nil {
			return err
		}
		fmt.Println("committed", a, b)
		parent = []string{b}
	}
}

// helperHold is in the middle of a transaction when it is killed.
func helperHold(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=journal_mode(WAL)")
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for i := range 2000 {
		if _, err := tx.ExecContext(ctx, `INSERT INTO meta (name, value) VALUES (?, ?)`, fmt.Sprint("half", i), make([]byte, 4096)); err != nil {
			return err
		}
	}
	fmt.Println("inside")
	select {}
}

func start(t *testing.T, role, path string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$") //nolint:gosec,noctx // this very binary; it is killed by the test
	cmd.Env = append(os.Environ(), helperRole+"="+role, helperPath+"="+path)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, bufio.NewScanner(out)
}

func TestTwoProcessesOpenAFreshFile(t *testing.T) {
	t.Parallel()
	openTogether(t, filepath.Join(t.TempDir(), "tarry.db"))
}

func openTogether(t *testing.T, path string) {
	t.Helper()
	values := make([]string, 4)
	var wait sync.WaitGroup
	for i := range values {
		cmd, lines := start(t, "open", path)
		wait.Go(func() {
			for lines.Scan() {
				values[i] = lines.Text()
			}
			_ = cmd.Wait()
		})
	}
	wait.Wait()
	for _, v := range values {
		require.Truef(t, strings.HasPrefix(v, "value of process"), "%q", values)
		require.Equal(t, values[0], v)
	}
}

func TestKilledWriter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tarry.db")
	killWriters(t, path)
	integrity(t, path)
}

func killWriters(t *testing.T, path string) {
	t.Helper()
	s := open(t, path)
	require.NoError(t, s.Create(t.Context(), session.Session{Owner: ann, ID: "s", WorkflowID: "w"}))
	committed := map[string]bool{}
	for round := range 3 {
		cmd, lines := start(t, "write", path)
		for n := 0; n < 5+7*round && lines.Scan(); n++ {
			fields := strings.Fields(lines.Text())
			require.Lenf(t, fields, 3, "%q", lines.Text())
			committed[fields[1]], committed[fields[2]] = true, true
		}
		require.NoError(t, cmd.Process.Kill())
		for lines.Scan() {
			if fields := strings.Fields(lines.Text()); len(fields) == 3 {
				committed[fields[1]], committed[fields[2]] = true, true
			}
		}
		_ = cmd.Wait()
	}
	all, err := s.Events(t.Context(), session.Session{WorkflowID: "w"}, nil)
	require.NoError(t, err)
	there := map[string]bool{}
	var ids []string
	for _, r := range all {
		there[r.ID] = true
		ids = append(ids, r.ID)
	}
	for id := range committed {
		require.True(t, there[id], "%s was committed and is lost", id)
	}
	open, err := s.Open(t.Context(), session.Session{WorkflowID: "w"}, inv, ids)
	require.NoError(t, err)
	require.Len(t, open, len(all)/2, "an append is all or nothing")
	require.Zero(t, len(all)%2)
}

func TestKilledInsideTransaction(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tarry.db")
	s := open(t, path)
	cmd, lines := start(t, "hold", path)
	require.True(t, lines.Scan())
	require.Equal(t, "inside", lines.Text())
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	began := time.Now()
	value, err := s.Check(t.Context(), "half0", func() ([]byte, error) { return []byte("new"), nil })
	require.NoError(t, err)
	require.Equal(t, "new", string(value), "nothing of the killed transaction is left")
	require.Less(t, time.Since(began), 10*time.Second, "and its lock is gone")
	integrity(t, path)
}

func integrity(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	var result string
	require.NoError(t, db.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&result))
	require.Equal(t, "ok", result)
}

// The file holds what people said.
func TestFilePermissions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "tarry.db"))
	require.NoError(t, s.Create(t.Context(), session.Session{Owner: ann, ID: "s", WorkflowID: "w"}))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(entries), 2, "the database and its log")
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), e.Name())
	}
}

func TestUnsupported(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://localhost:port/x", "mysql:x", "file::memory:", "sqlite://:memory:", "sqlite://"} {
		_, err := store.Open(t.Context(), url)
		require.ErrorIs(t, err, store.ErrUnsupported, url)
	}
	_, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "no", "such", "folder.db"))
	require.Error(t, err)
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "file:", "sqlite://"} {
		path := filepath.Join(t.TempDir(), "tarry.db")
		s := open(t, prefix+path)
		require.NoError(t, s.Ping(t.Context()))
		require.FileExists(t, path)
	}
}
