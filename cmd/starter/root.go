package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

const defaultServer = "http://127.0.0.1:8080"

// app is what the commands share.
type app struct {
	getenv         func(string) string
	stdout, stderr io.Writer

	server, user string
	json         bool
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "starter",
		Short: "Starts and follows runs of Tarry's agents",
		Long: `Starts and follows runs of agents. A run goes on by itself: whoever follows it may leave and come back.

` + exitExplanation,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	server := a.getenv("TARRY_SERVER")
	if server == "" {
		server = defaultServer
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.server, "server", server, "`URL` of the server (environment: TARRY_SERVER)")
	user := "user"
	if a.getenv("TARRY_TOKEN_FILE") != "" {
		user = "me" // whoever the token is about
	}
	flags.StringVar(&a.user, "user", user, "whose runs these are; at a server with sign-in, \"me\" is whoever TARRY_TOKEN_FILE's token is about")
	flags.BoolVar(&a.json, "json", false, "write JSON to standard output: one value, or one on each line")
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(
		a.runCommand(), a.showCommand(), a.listCommand(), a.loginsCommand(), a.approveCommand(), a.answerCommand(), a.cancelCommand(),
		a.accountsCommand(), a.auditCommand(), a.exportCommand(), a.replayCommand(), a.devCommand(), a.setupCommand(), a.demoCommand(),
		a.demoServicesCommand(), a.demoCertificatesCommand(), a.healthCommand(), a.vaultCommand(), a.webhooksCommand(),
	)
	return root
}

// say writes a line for the person.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintln(a.stderr, harmless(fmt.Sprintf(format, args...))) // nobody is left to tell
}

// print writes a line of what was asked for.
func (a *app) print(format string, args ...any) error {
	return a.write(harmless(fmt.Sprintf(format, args...)))
}

func (a *app) write(line string) error {
	if _, err := fmt.Fprintln(a.stdout, line); err != nil {
		return failed("write: %w", err)
	}
	return nil
}

// harmless keeps what models, tools and servers write from steering the terminal: escape sequences rewrite lines and
// titles, and fill the clipboard.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// printJSON writes v as one line.
func (a *app) printJSON(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return failed("encode: %w", err)
	}
	return a.write(string(body))
}
