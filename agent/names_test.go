package agent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
)

func TestCheckID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"a", "user@example.com", "ünïcode", "with space", strings.Repeat("x", 64), "...", "a.b", `a\b`} {
		require.NoError(t, agent.CheckID("user", id), id)
	}
	for id, want := range map[string]string{
		"":                      "user id is empty",
		strings.Repeat("x", 65): "user id is 65 bytes long, at most 64 are allowed",
		strings.Repeat("ü", 33): "user id is 66 bytes long, at most 64 are allowed",
		".":                     `user id "." would be lost in a URL path`,
		"..":                    `user id ".." would be lost in a URL path`,
		"a/b":                   `user id "a/b" contains a slash, a control character or invalid UTF-8`,
		"a\nb":                  `user id "a\nb" contains a slash, a control character or invalid UTF-8`,
		"a\x00":                 `user id "a\x00" contains a slash, a control character or invalid UTF-8`,
		"a\u0085":               `user id "a\u0085" contains a slash, a control character or invalid UTF-8`,
		"a\xff":                 `user id "a\xff" contains a slash, a control character or invalid UTF-8`,
	} {
		require.EqualError(t, agent.CheckID("user", id), want)
	}
}

func TestOwner(t *testing.T) {
	t.Parallel()
	require.NoError(t, agent.Owner{App: "a", User: "u"}.Validate())
	for _, o := range []agent.Owner{{}, {App: "a"}, {User: "u"}, {App: "a", User: "../u"}} {
		require.ErrorIs(t, o.Validate(), agent.ErrInvalidOwner)
	}
}

func TestReserved(t *testing.T) {
	t.Parallel()
	for _, name := range []string{agent.RequestCredential, agent.RequestConfirmation, agent.RequestInput, "adk_request_anything", agent.TransferToAgent, agent.ToolsetAuthPrefix + "X"} {
		require.True(t, agent.Reserved(name), name)
	}
	for _, name := range []string{agent.ExitLoop, "list_tickets", "adk", ""} {
		require.False(t, agent.Reserved(name), name)
	}
}

func TestSecretRef(t *testing.T) {
	t.Parallel()
	for ref, want := range map[agent.SecretRef]agent.Source{
		"${env:TARRY_SECRET_X}": {Kind: "env", Name: "TARRY_SECRET_X"},
		"${file:a/b}":           {Kind: "file", Name: "a/b"},
		"${file:a..b}":          {Kind: "file", Name: "a..b"},
	} {
		got, err := ref.Parse()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, ref := range []agent.SecretRef{
		"", "hunter2", "x${env:TARRY_SECRET_X}", "${env:TARRY_SECRET_X}${env:TARRY_SECRET_Y}", "${env:TARRY_SECRET_X", "${vault:x}",
		"${env:PATH}", "${env:TARRY_SECRET_}", "${env:}", "${file:}", "${file:/etc/passwd}", "${file:../x}", "${file:a/../../x}",
	} {
		_, err := ref.Parse()
		require.Error(t, err, string(ref))
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestSecretTemplate(t *testing.T) {
	t.Parallel()
	var asked []agent.Source
	resolve := func(s agent.Source) (string, error) {
		asked = append(asked, s)
		return "<" + s.Name + " ${env:TARRY_SECRET_NOT_AGAIN}>", nil
	}
	template := agent.SecretTemplate("a ${env:TARRY_SECRET_X} b ${file:y} ${z}")
	got, err := template.Expand(resolve)
	require.NoError(t, err)
	require.Equal(t, "a <TARRY_SECRET_X ${env:TARRY_SECRET_NOT_AGAIN}> b <y ${env:TARRY_SECRET_NOT_AGAIN}> ${z}", got)
	sources, err := template.References()
	require.NoError(t, err)
	require.Equal(t, asked, sources)

	asked = nil
	_, err = agent.SecretTemplate("${env:PATH}").Expand(resolve)
	require.ErrorContains(t, err, "must begin with TARRY_SECRET_")
	require.Empty(t, asked)
	_, err = agent.SecretTemplate("${file:../x}").References()
	require.Error(t, err)

	gone := errors.New("gone")
	got, err = template.Expand(func(agent.Source) (string, error) { return "hunter2", gone })
	require.ErrorIs(t, err, gone)
	require.Empty(t, got)
}

func TestSecretName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "api_key", "GITHUB_TOKEN", "client-secret", "PGPASSWORD", "X-Auth-Email"} {
		require.True(t, agent.SecretName(name), name)
	}
	for _, name := range []string{"Accept", "X-Team", "Notion-Version", "PATH", ""} {
		require.False(t, agent.SecretName(name), name)
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	state := map[string]string{"topic": "cats", "app:name": "Tarry", "user:x": "y", "temp:z": "t", "nested": "{topic}", "artifact.img/a b.txt": "be kind"}
	lookup := func(key string) (string, bool) { v, ok := state[key]; return v, ok }
	for template, want := range map[string]string{
		"":                       "",
		"About {topic}.":         "About cats.",
		"{ topic } {{topic}}":    "cats cats",
		"{app:name}{user:x}":     "Tarryy",
		"{temp:z}{missing?}.":    "t.",
		"{nested}":               "{topic}",
		`{"a": 1} {} { } {a b}`:  `{"a": 1} {} { } {a b}`,
		"{app:user:x} {other:x}": "{app:user:x} {other:x}",
		"{artifact.} {1a} {a-b}": "{artifact.} {1a} {a-b}",
		"{artifact.img/a b.txt}": "be kind",
		"{artifact.gone?}":       "",
		"{open":                  "{open",
	} {
		got, err := agent.Render(template, lookup)
		require.NoError(t, err, template)
		require.Equal(t, want, got, template)
	}
	_, err := agent.Render("{topic} {gone} {lost}", lookup)
	var missing *agent.MissingKeyError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, "gone", missing.Key)
	require.EqualError(t, err, "instruction names {gone}, which is not in the session's state; write {gone?} where it may be missing")
	_, err = agent.Render("{artifact.gone.txt}", lookup)
	require.EqualError(t, err, "instruction names {artifact.gone.txt}, and there is no such artifact; write {artifact.gone.txt?} where it may be missing")
}

func TestTemplateKeys(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"b", "app:a", "c"}, agent.TemplateKeys(`{b} {app:a} {b} {c?} {artifact.d} {"x": 1}`))
	require.Empty(t, agent.TemplateKeys("none"))
}
