package main

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"tarry/server/accounts"
)

func (a *app) accountsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "accounts",
		Short: "List connected accounts, and disconnect them",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(
		a.accountsListCommand(),
		a.disconnectCommand("revoke", "Disconnect an account: its provider takes the access back, and it is forgotten here", true),
		a.disconnectCommand("delete", "Forget an account here, without telling its provider", false),
	)
	return cmd
}

func (a *app) accountsListCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what a user has connected",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			found, err := c.accounts(cmd.Context(), name)
			if err != nil {
				return err
			}
			rows := [][]string{{"ID", "APP", "PROVIDER", "ACCOUNT", "USED AT", "SCOPES", "CONNECTED", "LAST USED", "ENDS"}}
			for _, one := range found {
				ends := clock(one.Expires)
				if one.Renews {
					ends = "renewed"
				}
				rows = append(rows, []string{
					one.ID, one.App, one.Provider, one.Account, one.Server, strings.Join(one.Scopes, " "), clock(one.Connected), clock(one.LastUsed), ends,
				})
			}
			return a.table(rows, found, "no connected accounts")
		},
	}
	cmd.Flags().StringVar(&name, "app", "", "only of the app of this `name`")
	return cmd
}

func (a *app) disconnectCommand(use, short string, tell bool) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   use + " ID",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			out, err := c.disconnect(cmd.Context(), name, args[0], tell)
			if err != nil {
				return err
			}
			switch {
			case out.Reason != "":
				a.say("forgotten here; the provider was not told: %s", out.Reason)
			case out.Revoked:
				a.say("disconnected; the provider has taken the access back")
			default:
				a.say("forgotten here; the provider was not told")
			}
			if a.json {
				if err := a.printJSON(out); err != nil {
					return err
				}
			}
			if tell && !out.Revoked {
				return ended(exitFailed)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "app", "", "app that the account is connected to, where it is not in the list of apps any more")
	return cmd
}

func (c *client) accountsPath(app, rest string) string {
	return "/apps/" + url.PathEscape(app) + "/users/" + url.PathEscape(c.user) + "/accounts" + rest
}

// accounts lists what the user has connected, of one app if it is named.
func (c *client) accounts(ctx context.Context, app string) (out []accounts.Account, err error) {
	apps := []string{app}
	if app == "" {
		if apps, err = c.apps(ctx); err != nil {
			return nil, err
		}
	}
	out = []accounts.Account{}
	for _, app := range apps {
		query := url.Values{}
		for {
			var page accounts.Page
			if err := c.call(ctx, http.MethodGet, c.accountsPath(app, ""), query, nil, &page); err != nil {
				return nil, err
			}
			out = append(out, page.Accounts...)
			if page.Next == "" {
				break
			}
			query.Set("after", page.Next)
		}
	}
	return out, nil
}

// disconnect finds the app of an account, unless it is named.
func (c *client) disconnect(ctx context.Context, app, id string, tell bool) (out accounts.Outcome, err error) {
	if app == "" {
		found, err := c.accounts(ctx, "")
		if err != nil {
			return out, err
		}
		for _, one := range found {
			if one.ID == id {
				app = one.App
			}
		}
		if app == "" {
			return out, unusable("user %s has no connected account %q: `starter accounts list` shows those there are", c.user, id)
		}
	}
	method, path := http.MethodDelete, "/"+url.PathEscape(id)
	if tell {
		method, path = http.MethodPost, path+"/revoke"
	}
	err = c.call(ctx, method, c.accountsPath(app, path), nil, nil, &out)
	return out, err
}
