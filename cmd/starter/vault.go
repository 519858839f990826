package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tarry"
	"tarry/auth/kms"
	"tarry/auth/vault"
	"tarry/internal/wiring"
	"tarry/store"
)

func (a *app) vaultCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vault",
		Short: "Look at the keys that secrets are encrypted with, and rotate them",
		Long: `Works on the database and the keyset themselves, which the variables of worker and server name (TARRY_DATABASE_URL,
TARRY_DATABASE_PASSWORD_FILE, TARRY_KEYSET, TARRY_DATA_DIR). Workers and servers go on meanwhile. Whatever was interrupted goes on
when it is run again.`,
	}
	cmd.AddCommand(a.vaultStatusCommand(), a.vaultRotateCommand(), a.vaultPruneCommand(), a.vaultMoveCommand())
	return cmd
}

// lookup finds a variable of the environment; an empty one counts as unset.
func (a *app) lookup(name string) (string, bool) {
	value := a.getenv(name)
	return value, value != ""
}

// database is the configuration that worker and server have, whose database is there.
func (a *app) database() (tarry.Config, error) {
	c, err := tarry.ConfigFromEnv(a.lookup)
	if err != nil {
		return c, unusable("configuration: %w", err)
	}
	if path := c.DatabaseURL.Reveal(); !strings.Contains(path, ":") { // a file
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return c, unusable("there is no database %s; set TARRY_DATABASE_URL and TARRY_DATA_DIR as for worker and server", path)
		}
	}
	return c, nil
}

// openVault opens what worker and server share.
func (a *app) openVault(ctx context.Context) (*store.Store, *vault.Vault, error) {
	c, err := a.database()
	if err != nil {
		return nil, nil, err
	}
	s, v, err := wiring.OpenVault(ctx, wiring.Config{DatabaseURL: c.DatabaseURL, DataDir: c.DataDir, Keyset: c.Keyset, KMS: kms.Clients(a.lookup)})
	if err != nil {
		return nil, nil, unusable("%w", err)
	}
	return s, v, nil
}

// rotator runs f with what changes keys.
func (a *app) rotator(ctx context.Context, wait time.Duration, f func(*vault.Rotator) error) (err error) {
	s, v, err := a.openVault(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return f(&vault.Rotator{Vault: v, Store: s, Wait: wait, Say: a.say})
}

func (a *app) vaultStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "List the keys, how many values each has sealed, and which processes have which",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.rotator(cmd.Context(), 0, func(r *vault.Rotator) error {
				status, err := r.Status(cmd.Context())
				if err != nil {
					return failed("%w", err)
				}
				if a.json {
					return a.printJSON(jsonStatus(status))
				}
				if err := a.print("keyset %s", status.Source); err != nil {
					return err
				}
				rows := [][]string{{"KEY", "STATE", "VALUES"}}
				for _, k := range status.Keys {
					rows = append(rows, []string{key(k.ID), k.State, strconv.Itoa(k.Values)})
				}
				if err := a.table(rows, nil, ""); err != nil {
					return err
				}
				rows = [][]string{{"PROCESS", "SEALS WITH", "KEYS"}}
				for _, h := range status.Holders {
					rows = append(rows, []string{h.Name, key(h.Primary), strconv.Itoa(len(h.Keys))})
				}
				return a.table(rows, nil, "no process runs")
			})
		},
	}
}

func jsonStatus(s vault.Status) map[string]any {
	processes := []map[string]any{}
	for _, h := range s.Holders {
		processes = append(processes, map[string]any{"name": h.Name, "primary": h.Primary, "keys": h.Keys, "seconds": int(h.Held.Seconds())})
	}
	return map[string]any{"keyset": s.Source, "keys": s.Keys, "processes": processes}
}

func key(id uint32) string { return strconv.FormatUint(uint64(id), 10) }

const defaultWait = 2 * time.Minute

func (a *app) vaultRotateCommand() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Add a key, let every process seal with it, and seal everything anew",
		Long: `Adds a key to the keyset, waits until every process has it, makes it the primary one, waits until every process seals
with it, and seals everything in the database anew. Old keys stay in the keyset, so that backups of the database can be
read, until starter vault prune removes them.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.rotator(cmd.Context(), wait, func(r *vault.Rotator) error {
				out, err := r.Rotate(cmd.Context())
				for _, place := range out.Unreadable {
					a.say("does not open, and was left as it is: %s", place)
				}
				if err != nil {
					return failed("%w", err)
				}
				if a.json {
					return a.printJSON(map[string]any{"primary": out.Primary, "resealed": out.Resealed, "finished": out.Finished, "unreadable": len(out.Unreadable)})
				}
				what := "rotated"
				if out.Finished {
					what = "finished a rotation that was interrupted"
				}
				return a.print("%s: key %d is the primary one, %d values were sealed anew", what, out.Primary, out.Resealed)
			})
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", defaultWait, "how long to wait for processes that do not have the keyset yet")
	return cmd
}

func (a *app) vaultPruneCommand() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove keys that nothing is sealed with any more",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.rotator(cmd.Context(), wait, func(r *vault.Rotator) error {
				removed, err := r.Prune(cmd.Context())
				switch {
				case err != nil:
					return failed("%w", err)
				case a.json:
					return a.printJSON(map[string]any{"removed": append([]uint32{}, removed...)})
				case len(removed) == 0:
					return a.print("there are no old keys")
				}
				ids := make([]string, len(removed))
				for i, id := range removed {
					ids[i] = key(id)
				}
				return a.print("removed: %s", strings.Join(ids, ", "))
			})
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", defaultWait, "how long to wait for processes that do not have the keyset yet")
	return cmd
}

func (a *app) vaultMoveCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "move --to URI",
		Short: "Put the keyset into the database, encrypted with a key of a key management service",
		Long: `Encrypts the keyset that TARRY_KEYSET or TARRY_DATA_DIR names with the key of a key management service and stores it in
the database. Then set TARRY_KEYSET to that URI for every worker and server and start them one after the other. Do not rotate keys
before all of them have it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			s, v, err := a.openVault(cmd.Context())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			wrapper, err := kms.Clients(a.lookup).Key(cmd.Context(), to)
			if err != nil {
				return unusable("%w", err)
			}
			if err := v.MoveTo(cmd.Context(), &vault.KMS{URI: to, Key: wrapper, Store: s}); err != nil {
				return failed("%w", err)
			}
			return a.print("the keyset is in the database; set TARRY_KEYSET=%s", to)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the key's `URI`")
	_ = cmd.MarkFlagRequired("to") // it is there
	return cmd
}
