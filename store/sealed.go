package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"tarry/auth/inputs"
	"tarry/auth/oauth"
	"tarry/auth/vault"
)

// sealedTable is a table with sealed values. This is the one list of them: rotation seals anew what it finds by it, and a
// test compares it with the schema.
type sealedTable struct {
	name    string
	columns []string
	// rows lists rows after a key, in the order of keys.
	rows func(c *conn, after string, limit int) ([]vault.Row, error)
	// save replaces a value that is still old's, and returns how many rows changed.
	save func(c *conn, key string, old vault.Sealed, cipher []byte) (int64, error)
}

func sealedTables() []sealedTable {
	return []sealedTable{
		{"meta", []string{"value"}, metaRows, column("meta", "name")}, // first: who has a keyset of before finds out at start
		{"grants", []string{"access", "refresh", "client_secret", "id_token"}, grantRows, column("grants", "id")},
		{"flows", []string{"verifier", "nonce", "code", "client_secret", "device"}, flowRows, column("flows", "state_hash")},
		{"registrations", []string{"secret"}, registrationRows, saveRegistration},
		{"requests", []string{columnInput, columnAnswer}, requestRows, saveRequest},
	}
}

// Names of the sealed values in a request's need.
const (
	columnInput  = "input"
	columnAnswer = "answer"
)

// SealedTables implements [vault.SealedStore].
func (s *Store) SealedTables() (names []string) {
	for _, t := range sealedTables() {
		names = append(names, t.name)
	}
	return names
}

func tableOf(name string) (sealedTable, error) {
	all := sealedTables()
	i := slices.IndexFunc(all, func(t sealedTable) bool { return t.name == name })
	if i < 0 {
		return sealedTable{}, fmt.Errorf("store: %q has no sealed values", name)
	}
	return all[i], nil
}

// SealedRows implements [vault.SealedStore].
func (s *Store) SealedRows(ctx context.Context, table, after string, limit int) ([]vault.Row, error) {
	t, err := tableOf(table)
	if err != nil {
		return nil, err
	}
	return t.rows(s.read(ctx), after, limit)
}

// Reseal implements [vault.SealedStore].
func (s *Store) Reseal(ctx context.Context, table, key string, old vault.Sealed, cipher []byte) (ok bool, err error) {
	t, err := tableOf(table)
	if err != nil {
		return false, err
	}
	err = s.tx(ctx, func(c *conn) error {
		n, err := t.save(c, key, old, cipher)
		ok = n == 1
		return err
	})
	return ok, err
}

// column makes the save of a table with a plain key. Names come from this file alone.
func column(table, key string) func(*conn, string, vault.Sealed, []byte) (int64, error) {
	return func(c *conn, id string, old vault.Sealed, cipher []byte) (int64, error) {
		return c.exec(`UPDATE `+table+` SET `+old.Column+` = ? WHERE `+key+` = ? AND `+old.Column+` = ?`, cipher, id, old.Cipher)
	}
}

func metaRows(c *conn, after string, limit int) ([]vault.Row, error) {
	return collect(c, `SELECT name, value FROM meta WHERE name > ? ORDER BY name LIMIT ?`, []any{after, limit}, func(scan func(...any) error) (r vault.Row, err error) {
		var value []byte
		err = scan(&r.Key, &value)
		if sealed, ok := vault.KeyValue(r.Key, value); ok {
			r.Values = []vault.Sealed{sealed}
		}
		return r, err
	})
}

func grantRows(c *conn, after string, limit int) (out []vault.Row, err error) {
	found, err := c.grants(`id > ? ORDER BY id LIMIT ?`, after, limit)
	for _, g := range found {
		out = append(out, vault.Row{Key: g.ID, Values: g.Sealed()})
	}
	return out, err
}

func flowRows(c *conn, after string, limit int) (out []vault.Row, err error) {
	found, err := c.flows(`state_hash > ? ORDER BY state_hash LIMIT ?`, after, limit)
	for _, f := range found {
		out = append(out, vault.Row{Key: f.StateHash, Values: f.Sealed()})
	}
	return out, err
}

func registrationRows(c *conn, after string, limit int) (out []vault.Row, err error) {
	key := [2]string{}
	if after != "" {
		if err := decode(after, &key); err != nil {
			return nil, err
		}
	}
	found, err := c.registrations(`(issuer, redirect_uri) > (?, ?) ORDER BY issuer, redirect_uri LIMIT ?`, key[0], key[1], limit)
	for _, r := range found {
		text, err := encode([2]string{r.Issuer, r.RedirectURI})
		if err != nil {
			return nil, err
		}
		out = append(out, vault.Row{Key: text, Values: r.Sealed()})
	}
	return out, err
}

func saveRegistration(c *conn, key string, old vault.Sealed, cipher []byte) (int64, error) {
	var k [2]string
	if err := decode(key, &k); err != nil {
		return 0, err
	}
	return c.exec(`UPDATE registrations SET secret = ? WHERE issuer = ? AND redirect_uri = ? AND secret = ?`, cipher, k[0], k[1], old.Cipher)
}

func requestRows(c *conn, after string, limit int) (out []vault.Row, err error) {
	found, err := c.requests(`id > ? AND (need LIKE '%"input":%' OR need LIKE '%"answer":%') ORDER BY id LIMIT ?`, after, limit)
	for _, r := range found {
		input, answer := inputs.Sealed(r)
		out = append(out, vault.Row{Key: r.ID, Values: []vault.Sealed{
			{Column: columnInput, Cipher: r.Need.Input, AD: input}, {Column: columnAnswer, Cipher: r.Need.Answer, AD: answer},
		}})
	}
	return out, err
}

// saveRequest leaves the rest of the need as it is, whoever wrote it. The lock keeps it from being written meanwhile by who
// has read it before.
func saveRequest(c *conn, id string, old vault.Sealed, cipher []byte) (int64, error) {
	switch _, err := c.locked(id); {
	case errors.Is(err, oauth.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	}
	var text string
	if err := c.get(`SELECT need FROM requests WHERE id = ?`, []any{id}, []any{&text}); err != nil {
		return 0, err
	}
	need := map[string]json.RawMessage{}
	if err := decode(text, &need); err != nil {
		return 0, err
	}
	before, err := json.Marshal(old.Cipher)
	if err != nil {
		return 0, fmt.Errorf("encode: %w", err)
	}
	if string(need[old.Column]) != string(before) {
		return 0, nil
	}
	if need[old.Column], err = json.Marshal(cipher); err != nil {
		return 0, fmt.Errorf("encode: %w", err)
	}
	after, err := encode(need)
	if err != nil {
		return 0, err
	}
	return c.exec(`UPDATE requests SET need = ? WHERE id = ?`, after, id)
}
