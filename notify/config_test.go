package notify_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/notify"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body string
		says []string
	}{
		"good":    {"webhooks:\n- name: ops\n  url: https://hooks.example/x\n  secrets: ['${env:TARRY_SECRET_HOOK}']\n  apps: ['*']\n  types: [run.auth_required, 'credential.*']\n", nil},
		"JSON":    {`{"webhooks":[{"name":"ops","url":"https://hooks.example","secrets":["${file:hook}"],"apps":["planner"]}]}`, nil},
		"empty":   {"", nil},
		"unknown": {"webhooks:\n- nam: ops\n", []string{"nam"}},
		"everything": {"webhooks:\n- name: Ops!\n  url: ftp://x\n  secrets: [whsec_abc]\n  types: [login.done]\n", []string{
			"webhooks[0].name", "webhooks[0].url", "webhooks[0].secrets[0]", "not a literal", "webhooks[0].apps", "webhooks[0].types[0]", "credential.granted",
		}},
		"password": {"webhooks:\n- name: a\n  url: https://user:sesame@x\n  secrets: ['${file:a}']\n  apps: [a]\n", []string{"has a user or password"}},
		"twice":    {"webhooks:\n- {name: a, url: 'https://x', secrets: ['${file:a}'], apps: [a]}\n- {name: a, url: 'https://x', secrets: ['${file:a}'], apps: [a]}\n", []string{`webhooks[1].name: "a" is there twice`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "webhooks.yaml")
			require.NoError(t, os.WriteFile(path, []byte(tc.body), 0o600))
			_, err := notify.Load(path)
			if tc.says == nil {
				require.NoError(t, err)
				return
			}
			for _, says := range tc.says {
				require.ErrorContains(t, err, says)
			}
			require.NotContains(t, err.Error(), "sesame")
			require.NotContains(t, err.Error(), "whsec_abc")
		})
	}
}

func TestSecretsAreChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "plain", "whsec_c2hvcnQ=", "whsec_!"} {
		_, err := notify.New(t.Context(), notify.Config{
			Endpoints: []notify.Endpoint{{Name: "ops", Secrets: []agent.SecretRef{"${file:a}"}}}, Log: slog.New(slog.DiscardHandler),
			Secrets: func(context.Context, agent.Source) (auth.Secret, error) { return auth.NewSecret(bad), nil },
		})
		require.ErrorContains(t, err, "webhook ops: secrets: not a webhook secret")
	}
}
