package e2e_test

import (
	"bufio"
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

// tamper changes one row behind the back of everybody.
func (w *world) tamper(text string, args ...any) {
	w.t.Helper()
	require.EqualValues(w.t, 1, w.exec(text, args...), text)
}

func (w *world) exec(text string, args ...any) (rows int64) {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+w.Database()+"?_pragma=busy_timeout(10000)")
	require.NoError(w.t, err)
	defer db.Close()
	result, err := db.ExecContext(w.t.Context(), text, args...)
	require.NoError(w.t, err, text)
	rows, err = result.RowsAffected()
	require.NoError(w.t, err)
	return rows
}

// Whoever can write to the database, and has no key, moves no token: rows of one person under another's name, ciphertexts
// in other places, other endpoints, another owner of a slot. A token that does not open is thrown away and asked for anew.
func TestTamperedRows(t *testing.T) {
	t.Parallel()
	evil := newHostile(t)
	w := newWorld(t, single(call("whoami")+text("{{response.whoami.user}}")))
	go1 := map[string]string{"task": "Who am I?"}
	ann := w.api.startAs("ann", "assistant", go1)
	w.login(w.waiting(ann))
	ben := w.api.startAs("ben", "assistant", go1)
	w.loginAs(w.waiting(ben), "bob")
	require.Contains(t, w.finished(ann).Answer, "alice")
	require.Contains(t, w.finished(ben).Answer, "bob")
	calls, tokens := len(w.mcp.Calls("")), w.provider.Counts().Token["refresh_token"]
	// refused runs as a user and expects that no tool was reached.
	refused := func(what, user string) {
		t.Helper()
		r := w.api.startAs(user, "assistant", go1)
		w.eventually(what+": the run neither ends nor asks", func() bool {
			s := r.status()
			return s.InvocationStatus == "failed" || len(s.WaitingFor) > 0 // by the script, which has no name to say
		})
		require.Len(t, w.mcp.Calls(""), calls, what)
		require.Equal(t, tokens, w.provider.Counts().Token["refresh_token"], what)
		w.api.call("POST", r.path("/cancel"), nil, nil)
	}
	w.exec(`CREATE TABLE saved AS SELECT * FROM grants`)
	restore := func() {
		w.exec(`DELETE FROM grants`)
		w.exec(`INSERT INTO grants SELECT * FROM saved`)
	}
	saved := func(user, column string) string {
		return w.query(`SELECT hex(`+column+`) FROM saved WHERE usr = ?`, user)[0]
	}
	put := func(user, column, value string) {
		w.tamper(`UPDATE grants SET `+column+` = unhex(?) WHERE usr = ?`, value, user)
	}
	put("ann", "access", saved("ben", "access"))
	refused("ben's token in ann's row", "ann")
	require.Empty(t, w.query(`SELECT id FROM grants WHERE usr = 'ann'`))
	restore()
	put("ann", "access", saved("ann", "refresh"))
	refused("the refresh token as access token", "ann")
	restore()

	// The whole row of the other, by its columns and then by what it says of itself.
	body := w.query(`SELECT body FROM grants WHERE usr = 'ben'`)[0]
	w.tamper(`UPDATE grants SET usr = 'cid' WHERE usr = 'ben'`)
	refused("ben's row under cid's name", "cid")
	w.tamper(`UPDATE grants SET body = ? WHERE usr = 'cid'`, strings.Replace(body, `"user":"ben"`, `"user":"cid"`, 1))
	refused("ben's row with cid as its owner", "cid")
	restore()

	// A token that is due goes to the endpoint that it came from, and nowhere else.
	due := func(user, body string) {
		w.tamper(`UPDATE grants SET body = ? WHERE usr = ?`, body, user)
		w.provider.RevokeAccessTokens()
	}
	ours := w.query(`SELECT body FROM grants WHERE usr = 'ann'`)[0]
	moved := strings.Replace(ours, w.provider.TokenURL(), evil.URL+"/token", 1)
	require.NotEqual(t, ours, moved)
	due("ann", moved)
	refused("another token endpoint in a grant", "ann")
	require.Empty(t, evil.came("POST"))
	restore()
	w.tamper(`UPDATE grants SET body = ? WHERE usr = 'ann'`, strings.Replace(ours, w.mcp.URL(), evil.URL, 1))
	refused("another resource in a grant", "ann")
	restore()
	require.Contains(t, w.finished(w.api.startAs("ann", "assistant", go1)).Answer, "alice", "put right, it works again")

	// A login on its way.
	exchanged := w.provider.Counts().Token["authorization_code"]
	r := w.api.startAs("dot", "assistant", go1)
	link := w.waiting(r)
	id := r.status().WaitingFor[0].Request
	browser, address := w.toCallback(link)
	w.tamper(`UPDATE flows SET body = replace(body, ?, ?) WHERE request = ?`, w.provider.TokenURL(), evil.URL+"/token", id)
	w.refusedAt("another token endpoint in a flow", browser, address, r)
	second, address := w.toCallback(link)
	w.tamper(`UPDATE flows SET usr = 'eve' WHERE request = ? AND status = 'live'`, id)
	w.refusedAt("a flow of somebody else", second, address, r)
	third, address := w.toCallback(link)
	w.tamper(`UPDATE requests SET need = replace(need, '"user":"dot"', '"user":"eve"') WHERE id = ?`, id)
	w.refusedAt("a slot of somebody else", third, address, r)
	page, err := third.Press(t.Context(), w.visit(third, link), "connect")
	require.NoError(t, err)
	require.Equal(t, "Set-up problem", page.Title)
	require.Empty(t, evil.came("POST"))
	require.Equal(t, exchanged, w.provider.Counts().Token["authorization_code"])
	w.tamper(`UPDATE requests SET need = replace(need, '"user":"eve"', '"user":"dot"') WHERE id = ?`, id)
	require.Contains(t, w.login(link).Title, "Connected")
	require.Contains(t, w.finished(r).Answer, "alice")
	for _, c := range w.mcp.Calls("") {
		require.Contains(t, []string{"alice", "bob"}, c.User)
	}
}

// program runs the server on a folder until it says that it is ready, or ends; stop ends it.
func program(t *testing.T, dir string, env ...string) (ready bool, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(binaries, "server")) //nolint:gosec // our own program
	cmd.Env = append([]string{
		"TARRY_DATA_DIR=" + dir, "TARRY_DATABASE_URL=" + filepath.Join(dir, "tarry.db"), "TARRY_HTTP_ADDR=127.0.0.1:0", "TEMPORAL_ADDRESS=127.0.0.1:1",
	}, env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return false, "not started"
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	ready = strings.HasPrefix(line, "ready ")
	if ready {
		_ = cmd.Process.Kill()
	}
	_ = cmd.Wait()
	return ready, errs.String()
}

// Several processes that start on an empty folder make one keyset; a lost or wrong one is an error that says what to do.
func TestKeyset(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), ".tarry")
	require.NoError(t, os.Mkdir(dir, 0o700))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			ready, output := program(t, dir)
			if !ready {
				t.Error(output)
			}
		})
	}
	group.Wait()
	file := filepath.Join(dir, "keyset.json")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := filepath.Glob(filepath.Join(dir, ".keyset-*"))
	require.NoError(t, err)
	require.Empty(t, left)
	ignored, err := os.ReadFile(filepath.Join(dir, ".gitignore"))
	require.NoError(t, err)
	require.Equal(t, "*\n", string(ignored))
	kept, err := os.ReadFile(file)
	require.NoError(t, err)

	require.NoError(t, os.Remove(file))
	ready, output := program(t, dir)
	require.False(t, ready)
	require.Contains(t, output, "put the file back from its backup")
	require.NoFileExists(t, file, "no second keyset")

	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	require.NoError(t, err)
	var other strings.Builder
	require.NoError(t, insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&other)))
	for what, content := range map[string]string{"another": other.String(), "half of it": string(kept[:len(kept)/2]), "nothing": ""} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		ready, output = program(t, dir)
		require.False(t, ready, what)
		require.Contains(t, output, "keyset", what)
		require.NotContains(t, output, string(kept[len(kept)/4:len(kept)/3]), what)
	}
	require.NoError(t, os.WriteFile(file, kept, 0o600)) //nolint:gosec // the test's own folder
	ready, output = program(t, dir)
	require.True(t, ready, output)

	// Without sign-in nobody but this machine is served.
	for name, setting := range map[string]string{
		"all addresses": "TARRY_HTTP_ADDR=0.0.0.0:0", "no address": "TARRY_HTTP_ADDR=:0", "IPv6": "TARRY_HTTP_ADDR=[::]:0", "the network": "TARRY_HTTP_ADDR=192.0.2.1:0",
		"public name": "TARRY_PUBLIC_URL=https://tarry.example", "look-alike": "TARRY_PUBLIC_URL=http://localhost.evil.example",
	} {
		ready, output = program(t, dir, setting)
		require.False(t, ready, name)
		require.Contains(t, output, "loopback", name)
	}
}
