package inputs_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/inputs"
	"tarry/auth/vault"
)

// kept is a store that holds one request.
type kept struct{ r auth.Request }

func (k *kept) Request(context.Context, string, auth.Access) (auth.Request, error) { return k.r, nil }

func (k *kept) AnswerInput(_ context.Context, _ string, _ auth.Access, answer []byte, status auth.Status) (auth.Status, error) {
	k.r.Need.Answer, k.r.Status = answer, status
	return status, nil
}

func (k *kept) Interim(context.Context, string, auth.Access, map[string]any) (auth.Status, error) {
	return k.r.Status, nil
}

// overtaken is a store in which another answer comes first, between the look at the request and the answer to it.
type overtaken struct {
	kept
	other auth.Request
}

func (o *overtaken) AnswerInput(context.Context, string, auth.Access, []byte, auth.Status) (auth.Status, error) {
	o.r = o.other
	return o.r.Status, auth.ErrClosed
}

// rotating is a store in which a rotation of keys seals the answer anew before anybody looks at it.
type rotating struct {
	kept
	vault *vault.Vault
}

func (o *rotating) AnswerInput(ctx context.Context, id string, access auth.Access, answer []byte, status auth.Status) (auth.Status, error) {
	_, ad := inputs.Sealed(o.r)
	plain, err := o.vault.Open(answer, ad)
	if err != nil {
		return "", err
	}
	if answer, err = o.vault.Seal(plain, ad); err != nil {
		return "", err
	}
	return o.kept.AnswerInput(ctx, id, access, answer, status)
}

// An answer counts though it was sealed anew since.
func TestAnswerThatARotationSealsAnew(t *testing.T) {
	t.Parallel()
	v, err := vault.Open(t.Context(), vault.Config{KeysetFile: filepath.Join(t.TempDir(), "keyset"), Checks: fresh{}})
	require.NoError(t, err)
	owner := agent.Owner{App: "app", User: "ann"}
	r := auth.Request{ID: "c", Owner: owner, Status: auth.StatusPending, Need: auth.Need{Type: auth.TypeResult, Slot: auth.ResultSlot(owner, "c")}}
	woken := false
	s := &inputs.Service{Store: &rotating{kept{r}, v}, Vault: v, Log: slog.New(slog.DiscardHandler), Wake: func() { woken = true }}
	got, err := s.Complete(t.Context(), nil, "c", map[string]any{"said": "first"})
	require.NoError(t, err)
	require.Equal(t, auth.StatusGranted, got.Status)
	require.True(t, woken)
}

// Of two who answer at the same time, by two servers, one hears that the answer counts.
func TestOvertakenByTheSameOutcome(t *testing.T) {
	t.Parallel()
	v, err := vault.Open(t.Context(), vault.Config{KeysetFile: filepath.Join(t.TempDir(), "keyset"), Checks: fresh{}})
	require.NoError(t, err)
	owner := agent.Owner{App: "app", User: "ann"}
	r := auth.Request{ID: "c", Owner: owner, Status: auth.StatusPending, Need: auth.Need{Type: auth.TypeResult, Slot: auth.ResultSlot(owner, "c")}}
	first := &kept{r}
	log := slog.New(slog.DiscardHandler)
	_, err = (&inputs.Service{Store: first, Vault: v, Log: log}).Complete(t.Context(), nil, "c", map[string]any{"said": "first"})
	require.NoError(t, err)
	woken := false
	second := &inputs.Service{Store: &overtaken{kept{r}, first.r}, Vault: v, Log: log, Wake: func() { woken = true }}
	got, err := second.Complete(t.Context(), nil, "c", map[string]any{"said": "second"})
	require.ErrorIs(t, err, inputs.ErrClosed)
	require.Equal(t, auth.StatusGranted, got.Status)
	require.False(t, woken)
	said, err := second.Said(first.r)
	require.NoError(t, err)
	require.JSONEq(t, `{"said":"first"}`, string(said))
}

// fresh is a database without check rows.
type fresh struct{}

func (fresh) Check(_ context.Context, _ string, create func() ([]byte, error)) ([]byte, error) {
	return create()
}

// What is sealed for one request opens for no other: not for another row, person, call or server, and a question is no answer.
func TestSealedForOneRequest(t *testing.T) {
	t.Parallel()
	v, err := vault.Open(t.Context(), vault.Config{KeysetFile: filepath.Join(t.TempDir(), "keyset"), Checks: fresh{}})
	require.NoError(t, err)
	owner := agent.Owner{App: "app", User: "ann"}
	r := auth.Request{ID: "r", Owner: owner, Status: auth.StatusPending, Need: auth.Need{Type: auth.TypeInput, Slot: auth.InputSlot(owner, "https://mcp.example", "c")}}
	store := &kept{}
	s := &inputs.Service{Store: store, Vault: v, Log: slog.New(slog.DiscardHandler)}
	q := auth.Question{Inputs: []auth.Input{{Key: "k", Mode: auth.InputURL, URL: "https://pay.example"}}, State: "state"}
	r.Need.Input, err = s.Seal(r, q)
	require.NoError(t, err)
	require.NotContains(t, string(r.Need.Input), "pay.example")
	opened, err := s.Question(r)
	require.NoError(t, err)
	require.Equal(t, q, opened)
	store.r = r
	_, err = s.Answer(t.Context(), nil, "r", map[string]auth.InputAnswer{"k": {Action: auth.InputAccept}})
	require.NoError(t, err)
	r = store.r
	_, answers, err := s.Answers(r)
	require.NoError(t, err)
	require.Equal(t, auth.InputAccept, answers["k"].Action)

	for name, change := range map[string]func(*auth.Request){
		"row":    func(o *auth.Request) { o.ID = "other" },
		"person": func(o *auth.Request) { o.Owner.User = "bob" },
		"app":    func(o *auth.Request) { o.Owner.App = "other" },
		"call":   func(o *auth.Request) { o.Need.Slot = auth.InputSlot(owner, "https://mcp.example", "other") },
		"server": func(o *auth.Request) { o.Need.Slot = auth.InputSlot(owner, "https://evil.example", "c") },
		"column": func(o *auth.Request) { o.Need.Input = o.Need.Answer },
	} {
		other := r
		change(&other)
		_, err := s.Question(other)
		require.ErrorIs(t, err, vault.ErrCipher, name)
		require.NotContains(t, err.Error(), "pay.example")
	}
	swapped := r
	swapped.Need.Answer = r.Need.Input
	_, _, err = s.Answers(swapped)
	require.ErrorIs(t, err, vault.ErrCipher)
	login := r
	login.Need.Type = "oauth2"
	_, err = s.Question(login)
	require.ErrorIs(t, err, inputs.ErrNotInput)
}
