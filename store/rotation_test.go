package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/auth/vault"
	"tarry/store"
)

// sealedWorld is a database with a value in every sealed column, of two people, and a raw handle on it.
type sealedWorld struct {
	*kit
	db     *sql.DB
	keyset string
	v      *vault.Vault
}

func eachSealedWorld(t *testing.T, f func(w *sealedWorld)) {
	t.Helper()
	for name, open := range map[string]func(t *testing.T) (string, *sql.DB){
		"sqlite": func(t *testing.T) (string, *sql.DB) {
			t.Helper()
			path := filepath.Join(t.TempDir(), "tarry.db")
			body, err := migrated()
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, body, 0o600))
			db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(20000)")
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			return path, db
		},
		"postgres": func(t *testing.T) (string, *sql.DB) {
			t.Helper()
			url := schema(t)
			return url, reach(t, url)
		},
	} {
		if name == "postgres" && testURL() == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, db := open(t)
			w := &sealedWorld{kit: newKit(t, func(tb testing.TB) *store.Store { tb.Helper(); return openAt(tb, url) }), db: db, keyset: filepath.Join(t.TempDir(), "keyset.json")}
			w.v = w.vault()
			w.fill(ann)
			w.fill(bob)
			f(w)
		})
	}
}

func openAt(tb testing.TB, url string) *store.Store { tb.Helper(); return open(tb, url) }

// vault is what another process opens.
func (w *sealedWorld) vault() *vault.Vault {
	w.Helper()
	v, err := vault.Open(w.ctx, vault.Config{KeysetFile: w.keyset, Checks: w.s})
	require.NoError(w, err)
	return v
}

// fill stores something in every sealed column, then seals it for its place.
func (w *sealedWorld) fill(o agent.Owner) {
	w.Helper()
	_, err := w.v.NamedKey(w.ctx, "key of "+o.User)
	require.NoError(w, err)
	row, request := w.waiting(o, "s", "read")
	g := grant("read")
	g.ClientSecret, g.IDToken, g.Expires = []byte("sealed client"), []byte("sealed id"), w.clock.now().Add(time.Hour)
	_, err = w.s.Commit(w.ctx, w.exchanging(request), g)
	require.NoError(w, err)
	w.ask(row, "", "more-"+o.User, need(o, "read", "write"))
	f := w.flow("more-" + o.User)
	f.ClientSecret, f.Device = []byte("sealed client"), []byte("sealed device")
	require.NoError(w, w.s.BeginFlow(w.ctx, f, 100))
	_, err = w.s.StartExchange(w.ctx, f.StateHash, []byte("sealed code"), "code-hash", time.Hour)
	require.NoError(w, err)
	_, err = w.s.Register(w.ctx, oauth.Registration{
		Issuer: "https://id.example", RedirectURI: "https://tarry.example/cb/" + o.User, ClientID: "client",
		Secret: []byte("sealed client"), TokenEndpoint: "https://id.example/token",
	})
	require.NoError(w, err)
	w.ask(row, "", "input-"+o.User, inputNeed(o, "c"))
	_, err = w.s.AnswerInput(w.ctx, "input-"+o.User, anyone, []byte("sealed answer"), auth.StatusGranted)
	require.NoError(w, err)
	for place, value := range w.sealed() {
		if !strings.HasPrefix(string(value.Cipher), "sealed ") {
			continue
		}
		cipher, err := w.v.Seal(auth.NewSecret("secret at "+place.String()), value.AD)
		require.NoError(w, err)
		ok, err := w.s.Reseal(w.ctx, place.Table, place.Key, value, cipher)
		require.NoError(w, err)
		require.True(w, ok, place)
	}
}

// sealed is every sealed value.
func (w *sealedWorld) sealed() map[vault.Place]vault.Sealed {
	w.Helper()
	out := map[vault.Place]vault.Sealed{}
	for _, table := range w.s.SealedTables() {
		for after := ""; ; {
			rows, err := w.s.SealedRows(w.ctx, table, after, 2)
			require.NoError(w, err)
			for _, row := range rows {
				require.Greater(w, row.Key, after)
				after = row.Key
				for _, value := range row.Values {
					if len(value.Cipher) > 0 {
						out[vault.Place{Table: table, Key: row.Key, Column: value.Column}] = value
					}
				}
			}
			if len(rows) < 2 {
				break
			}
		}
	}
	return out
}

// passing are sealed columns that no rotation needs to know, with the reason.
var passing = map[string]string{
	"artifacts.body":            "is kept in clear, as events are",
	"parked_callbacks.callback": "lives for minutes; who comes back after its key was removed logs in again",
}

// The list of sealed columns has all of them: a rotation would forget the others, and lose them when old keys go.
func TestSealedColumnsAreListed(t *testing.T) {
	t.Parallel()
	eachSealedWorld(t, func(w *sealedWorld) {
		query := `SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND c.type = 'BYTEA'`
		if strings.HasSuffix(w.Name(), "postgres") {
			query = `SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema() AND data_type = 'bytea'`
		}
		rows, err := w.db.QueryContext(w.ctx, query)
		require.NoError(w, err)
		defer rows.Close()
		found := map[string][]string{"requests": {"input", "answer"}} // inside need
		for rows.Next() {
			var table, column string
			require.NoError(w, rows.Scan(&table, &column))
			if passing[table+"."+column] != "" {
				continue
			}
			found[table] = append(found[table], column)
		}
		require.NoError(w, rows.Err())
		listed := store.SealedColumns()
		require.Len(w, listed, len(found))
		filled := map[string]bool{}
		for place := range w.sealed() {
			filled[place.Table+"."+place.Column] = true
		}
		for table, columns := range found {
			require.ElementsMatch(w, columns, listed[table], table)
			for _, column := range columns {
				require.True(w, filled[table+"."+column], "this file seals nothing in %s.%s", table, column)
			}
		}
	})
}

// A value opens in its place and nowhere else, and not when what it is bound to was edited.
func TestTamperedRowsAreRefused(t *testing.T) {
	t.Parallel()
	eachSealedWorld(t, func(w *sealedWorld) {
		all := w.sealed()
		opens := func(value vault.Sealed) error {
			_, err := w.v.Open(value.Cipher, value.AD)
			return err
		}
		for place, value := range all {
			require.NoError(w, opens(value), place)
			for other, there := range all {
				if other == place {
					continue
				}
				moved := there
				moved.Cipher = value.Cipher
				require.ErrorIs(w, opens(moved), vault.ErrCipher, "%s was put into %s", place, other)
			}
		}
		for name, text := range map[string]string{
			"token endpoint of grants": `UPDATE grants SET body = REPLACE(body, 'id.example/token', 'evil.example/token')`,
			"resource of grants":       `UPDATE grants SET body = REPLACE(body, 'mcp.example', 'evil.example')`,
			"issuer of grants":         `UPDATE grants SET body = REPLACE(body, '"issuer":"https://id.example"', '"issuer":"https://evil.example"')`,
			"user of grants":           `UPDATE grants SET body = REPLACE(body, '"user":"', '"user":"not-')`,
			"client of grants":         `UPDATE grants SET body = REPLACE(body, '"id":"client"', '"id":"other"')`,
			"id of grants":             `UPDATE grants SET id = 'x' || id`,
			"token endpoint of flows":  `UPDATE flows SET body = REPLACE(body, 'id.example/token', 'evil.example/token')`,
			"user of flows":            `UPDATE flows SET usr = 'not-' || usr`,
			"app of flows":             `UPDATE flows SET app = 'other'`,
			"state of flows":           `UPDATE flows SET state_hash = 'x' || state_hash`,
			"endpoint of clients":      `UPDATE registrations SET token_endpoint = 'https://evil.example/token'`,
			"issuer of clients":        `UPDATE registrations SET issuer = 'https://evil.example'`,
			"id of clients":            `UPDATE registrations SET client_id = 'other'`,
			"user of requests":         `UPDATE requests SET usr = 'not-' || usr`,
			"server of requests":       `UPDATE requests SET need = REPLACE(need, 'mcp.example', 'evil.example')`,
			"name of keys":             `UPDATE meta SET name = name || 'x' WHERE name LIKE 'vault-key/%'`,
		} {
			table := strings.Fields(text)[1]
			undo := w.backup(table)
			_, err := w.db.ExecContext(w.ctx, text)
			require.NoError(w, err, name)
			n := 0
			for place, value := range w.sealed() {
				// A client's secret in a grant does not depend on the tokens' expiry, and the proof has no name to edit.
				if place.Table != table || place.Key == "vault-keyset" {
					continue
				}
				n++
				require.ErrorIs(w, opens(value), vault.ErrCipher, "%s: %s", name, place)
			}
			require.NotZero(w, n, name)
			undo()
		}
	})
}

// backup keeps a table, for the function that it returns to bring back.
func (w *sealedWorld) backup(table string) func() {
	w.Helper()
	run := func(texts ...string) {
		for _, text := range texts {
			_, err := w.db.ExecContext(w.ctx, text)
			require.NoError(w, err, text)
		}
	}
	run(`CREATE TABLE kept AS SELECT * FROM ` + table)
	return func() {
		overriding := ""
		if table == "requests" && strings.HasSuffix(w.Name(), "postgres") {
			overriding = " OVERRIDING SYSTEM VALUE"
		}
		run(`DELETE FROM `+table, `INSERT INTO `+table+overriding+` SELECT * FROM kept`, `DROP TABLE kept`)
	}
}

func (w *sealedWorld) rotator(v *vault.Vault) *vault.Rotator {
	return &vault.Rotator{Vault: v, Store: w.s, Wait: 10 * time.Second, Settle: time.Nanosecond}
}

// running is a process that has the keyset: it looks at it and says so, as the real one does less often.
func (w *sealedWorld) running(name string) (v *vault.Vault, stop func()) {
	w.Helper()
	v = w.vault()
	ctx, cancel := context.WithCancel(w.ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		for ctx.Err() == nil {
			if err := v.Look(ctx); err != nil && ctx.Err() == nil {
				w.Error(err)
			}
			if err := w.s.Announce(ctx, v.Holder(name, name)); err != nil && ctx.Err() == nil {
				w.Error(err)
			}
			time.Sleep(time.Millisecond)
		}
	})
	return v, func() { cancel(); wait.Wait(); require.NoError(w, w.s.Leave(w.ctx, name)) }
}

// Keys are replaced while two processes refresh a grant, and nothing is lost: not what they write meanwhile, and not what
// one of them read before.
func TestRotationWhileProcessesWrite(t *testing.T) {
	t.Parallel()
	eachSealedWorld(t, func(w *sealedWorld) {
		before := w.sealed()
		ctx, cancel := context.WithCancel(w.ctx)
		var wait sync.WaitGroup
		var refreshed atomic.Int64
		stops := []func(){}
		for _, name := range []string{"one", "two"} {
			v, stop := w.running(name)
			stops = append(stops, stop)
			wait.Go(func() {
				for ctx.Err() == nil {
					g := w.grants(ann)[0]
					for i, value := range g.Sealed() {
						plain, err := v.Open(value.Cipher, value.AD)
						if err != nil {
							w.Error(name, value.Column, err)
							return
						}
						cipher, err := v.Seal(plain, value.AD)
						if err != nil {
							w.Error(err)
							return
						}
						*[]*[]byte{&g.Access, &g.Refresh, &g.ClientSecret, &g.IDToken}[i] = cipher
					}
					if ok, err := w.s.SaveRefresh(w.ctx, g.Version, g); err != nil {
						w.Error(err)
						return
					} else if ok {
						refreshed.Add(1)
					}
				}
			})
		}
		mine := w.vault()
		for range 3 {
			out, err := w.rotator(mine).Rotate(w.ctx)
			require.NoError(w, err)
			require.Empty(w, out.Unreadable)
			require.False(w, out.Finished)
			require.GreaterOrEqual(w, out.Resealed, len(before)-4)
		}
		w.clock.advance(time.Second)
		removed, err := w.rotator(mine).Prune(w.ctx)
		require.NoError(w, err)
		require.Len(w, removed, 3)
		cancel()
		wait.Wait()
		for _, stop := range stops {
			stop()
		}
		require.Positive(w, refreshed.Load())

		status, err := w.rotator(mine).Status(w.ctx)
		require.NoError(w, err)
		require.Equal(w, []vault.KeyStatus{{ID: status.Keys[0].ID, State: vault.KeyPrimary, Values: len(before)}}, status.Keys)
		fresh := w.vault()
		for place, value := range w.sealed() {
			plain, err := fresh.Open(value.Cipher, value.AD)
			require.NoError(w, err, place)
			if place.Table != "meta" {
				require.Equal(w, "secret at "+place.String(), plain.Reveal())
			}
			require.NotEqual(w, before[place].Cipher, value.Cipher, place)
		}
	})
}

// Killed at any step, a rotation goes on where it was: no second key is added.
func TestRotationGoesOn(t *testing.T) {
	t.Parallel()
	eachSealedWorld(t, func(w *sealedWorld) {
		var status vault.Status
		for most := 0; len(status.Keys) < 2 || status.Keys[0].Values > 0; most++ {
			dying := &dyingStore{Store: w.s, left: most}
			r := &vault.Rotator{Vault: w.vault(), Store: dying, Wait: time.Second}
			_, err := r.Rotate(w.ctx)
			require.ErrorIs(w, err, errKilled)
			_, err = w.db.ExecContext(w.ctx, `DELETE FROM vault_locks`) // its lease runs out
			require.NoError(w, err)
			status, err = w.rotator(w.vault()).Status(w.ctx)
			require.NoError(w, err)
			require.LessOrEqual(w, len(status.Keys), 2, "step %d", most)
			for place, value := range w.sealed() {
				_, err := w.vault().Open(value.Cipher, value.AD)
				require.NoError(w, err, "step %d: %s", most, place)
			}
		}
	})
}

var errKilled = fmt.Errorf("killed")

// dyingStore fails for ever after so many calls.
type dyingStore struct {
	*store.Store
	left int
}

func (d *dyingStore) step() error {
	if d.left--; d.left < 0 {
		return errKilled
	}
	return nil
}

func (d *dyingStore) LockRotation(ctx context.Context, holder string, lease time.Duration) (bool, error) {
	if err := d.step(); err != nil {
		return false, err
	}
	return d.Store.LockRotation(ctx, holder, lease)
}

func (d *dyingStore) UnlockRotation(ctx context.Context, holder string) error {
	if d.left < 0 {
		return nil // the dead give nothing back
	}
	return d.Store.UnlockRotation(ctx, holder)
}

func (d *dyingStore) Reseal(ctx context.Context, table, key string, old vault.Sealed, cipher []byte) (bool, error) {
	if err := d.step(); err != nil {
		return false, err
	}
	return d.Store.Reseal(ctx, table, key, old, cipher)
}

func TestRotationWaitsForEveryProcess(t *testing.T) {
	t.Parallel()
	eachSealedWorld(t, func(w *sealedWorld) {
		copied := filepath.Join(w.TempDir(), "copy.json")
		body, err := os.ReadFile(w.keyset)
		require.NoError(w, err)
		require.NoError(w, os.WriteFile(copied, body, 0o600)) //nolint:gosec // G703: in the test's own folder
		behind, err := vault.Open(w.ctx, vault.Config{KeysetFile: copied, Checks: w.s})
		require.NoError(w, err)
		require.NoError(w, w.s.Announce(w.ctx, behind.Holder("b", "server on b")))

		r := w.rotator(w.vault())
		r.Wait = time.Millisecond
		_, err = r.Rotate(w.ctx)
		require.ErrorIs(w, err, vault.ErrBehind)
		require.ErrorContains(w, err, "server on b")
		status, err := r.Status(w.ctx)
		require.NoError(w, err)
		require.Equal(w, []string{vault.KeyPrimary, vault.KeyStaged}, []string{status.Keys[0].State, status.Keys[1].State}, "nobody seals with a key that another cannot open")

		// The operator copies the file; then it goes on with the same key, and waits again until all seal with it.
		hand := func() {
			body, err := os.ReadFile(w.keyset)
			require.NoError(w, err)
			require.NoError(w, os.WriteFile(copied, body, 0o600)) //nolint:gosec // G703: in the test's own folder
			require.NoError(w, behind.Look(w.ctx))
			require.NoError(w, w.s.Announce(w.ctx, behind.Holder("b", "server on b")))
		}
		hand()
		_, err = r.Rotate(w.ctx)
		require.ErrorIs(w, err, vault.ErrBehind)
		hand()
		out, err := r.Rotate(w.ctx)
		require.NoError(w, err)
		require.True(w, out.Finished)
		require.Equal(w, status.Keys[1].ID, out.Primary)
		require.Positive(w, out.Resealed)

		// Nothing is removed where a process may have sealed with an old key just now.
		r.Settle = time.Hour
		r.Wait = -time.Hour
		_, err = r.Prune(w.ctx)
		require.ErrorIs(w, err, vault.ErrBehind)
		r.Settle, r.Wait = time.Nanosecond, time.Second
		w.clock.advance(time.Second)
		removed, err := r.Prune(w.ctx)
		require.NoError(w, err)
		require.Equal(w, []uint32{status.Keys[0].ID}, removed)

		// A copy from before is refused at start, and nothing can be rotated with it.
		require.NoError(w, os.WriteFile(copied, body, 0o600)) //nolint:gosec // G703: in the test's own folder
		_, err = vault.Open(w.ctx, vault.Config{KeysetFile: copied, Checks: w.s})
		require.ErrorIs(w, err, vault.ErrWrongKeyset)
		require.ErrorContains(w, err, "copy from before its keys were rotated")
	})
}

func TestPruneKeepsWhatIsUsed(t *testing.T) {
	t.Parallel()
	eachSealedWorld(t, func(w *sealedWorld) {
		// A value that was moved from elsewhere does not open, before or after.
		_, err := w.db.ExecContext(w.ctx, `UPDATE grants SET access = refresh WHERE usr = 'bob'`)
		require.NoError(w, err)
		r := w.rotator(w.vault())
		out, err := r.Rotate(w.ctx)
		require.NoError(w, err)
		require.Len(w, out.Unreadable, 1)
		require.Equal(w, "access", out.Unreadable[0].Column)
		_, err = r.Prune(w.ctx)
		require.ErrorIs(w, err, vault.ErrInUse)
		require.ErrorContains(w, err, "by 1 values")
		_, err = w.db.ExecContext(w.ctx, `DELETE FROM grants WHERE usr = 'bob'`)
		require.NoError(w, err)
		removed, err := r.Prune(w.ctx)
		require.NoError(w, err)
		require.Len(w, removed, 1)
		removed, err = r.Prune(w.ctx)
		require.NoError(w, err)
		require.Empty(w, removed)
	})
}

func TestOneRotationAtATime(t *testing.T) {
	t.Parallel()
	eachSealedWorld(t, func(w *sealedWorld) {
		ok, err := w.s.LockRotation(w.ctx, "somebody", time.Minute)
		require.NoError(w, err)
		require.True(w, ok)
		r := w.rotator(w.vault())
		r.Wait = 0
		_, err = r.Rotate(w.ctx)
		require.ErrorIs(w, err, vault.ErrRotating)
		_, err = r.Prune(w.ctx)
		require.ErrorIs(w, err, vault.ErrRotating)
		w.clock.advance(2 * time.Minute)
		_, err = r.Rotate(w.ctx)
		require.NoError(w, err, "the lease of one that was killed runs out")

		var wait sync.WaitGroup
		var done atomic.Int64
		for range 4 {
			wait.Go(func() {
				other := w.rotator(w.vault())
				if _, err := other.Rotate(w.ctx); err == nil {
					done.Add(1)
				} else {
					w.Error(err)
				}
			})
		}
		wait.Wait()
		status, err := r.Status(w.ctx)
		require.NoError(w, err)
		require.Len(w, status.Keys, 2+4, "each added one key, one after the other")
		require.True(w, slices.ContainsFunc(status.Keys, func(k vault.KeyStatus) bool { return k.State == vault.KeyPrimary && k.Values > 0 }))
	})
}
