package vault

import (
	"context"
	"errors"
	"fmt"

	"tarry/auth"
)

// Sealed is one value as it lies in a row.
type Sealed struct {
	// Column is where, by the database's name.
	Column string
	// Cipher is empty when the row has no such value.
	Cipher []byte
	AD     AD
}

// Row is a row that has sealed values.
type Row struct {
	// Key names the row within its table, for the store.
	Key    string
	Values []Sealed
}

// SealedStore finds everything that is sealed.
type SealedStore interface {
	// SealedTables lists the tables that have sealed values.
	SealedTables() []string
	// SealedRows lists rows of a table in the order of their keys, those after a key.
	SealedRows(ctx context.Context, table, after string, limit int) ([]Row, error)
	// Reseal replaces the value of a row's column, if it is old's still.
	Reseal(ctx context.Context, table, key string, old Sealed, cipher []byte) (bool, error)
}

// Place names a sealed value.
type Place struct{ Table, Key, Column string }

func (p Place) String() string { return fmt.Sprintf("%s.%s of %s", p.Table, p.Column, p.Key) }

// KeyValue is what is sealed in a row of [CheckStore]; ok is false for rows that hold something else.
func KeyValue(name string, cipher []byte) (s Sealed, ok bool) {
	s = Sealed{Column: "value", Cipher: cipher, AD: AD{Row: name, Column: columnKey}}
	switch {
	case name == keysetCheck:
		s.AD.Column = columnProof
		return s, true
	case len(name) > len(keyPrefix) && name[:len(keyPrefix)] == keyPrefix:
		return s, true
	}
	return Sealed{}, false
}

const batch = 100

// each goes through all sealed values.
func each(ctx context.Context, store SealedStore, between func() error, f func(Place, Sealed) error) error {
	for _, table := range store.SealedTables() {
		for after := ""; ; {
			if err := between(); err != nil {
				return err
			}
			rows, err := store.SealedRows(ctx, table, after, batch)
			if err != nil {
				return fmt.Errorf("vault: read %s: %w", table, err)
			}
			for _, row := range rows {
				after = row.Key
				for _, value := range row.Values {
					if len(value.Cipher) == 0 {
						continue
					}
					if err := f(Place{table, row.Key, value.Column}, value); err != nil {
						return err
					}
				}
			}
			if len(rows) < batch {
				break
			}
		}
	}
	return nil
}

// reseal seals every value anew that another key than the primary one has sealed. Values that do not open stay as they
// are.
func (v *Vault) reseal(ctx context.Context, store SealedStore, between func() error) (done int, left []Place, err error) {
	now := v.current()
	err = each(ctx, store, between, func(p Place, value Sealed) error {
		if KeyOf(value.Cipher) == now.primary {
			return nil
		}
		var plain auth.Secret
		plain, err := now.open(value.Cipher, value.AD)
		if errors.Is(err, ErrCipher) || errors.Is(err, ErrNoKey) {
			left = append(left, p)
			return nil
		}
		if err != nil {
			return err
		}
		cipher, err := now.seal(plain, value.AD)
		if err != nil {
			return err
		}
		ok, err := store.Reseal(ctx, p.Table, p.Key, value, cipher)
		if err != nil {
			return fmt.Errorf("vault: reseal %s: %w", p, err)
		}
		if ok {
			done++
		}
		return nil
	})
	return done, left, err
}
