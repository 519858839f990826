package oauth_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/internal/demo"
)

func deviceWant(p *demo.Provider) auth.Want {
	want := idWant(p)
	want.Auth.Grant = agent.GrantDeviceCode
	return want
}

// theRequest is the one that each test answers.
const theRequest = "r"

// coded asks for a login on another device and returns the code of its page.
func (w *world) coded(p *demo.Provider) *oauth.DeviceCode {
	w.t.Helper()
	w.ask(theRequest, w.needOf(deviceWant(p)))
	s, err := w.service.Begin(w.t.Context(), only(ann), theRequest, "")
	require.NoError(w.t, err)
	require.True(w.t, s.Device)
	require.Empty(w.t, s.RedirectURL)
	page, err := w.service.Page(w.t.Context(), only(ann), theRequest)
	require.NoError(w.t, err)
	require.True(w.t, page.ByDevice)
	require.NotNil(w.t, page.Device)
	return page.Device
}

// later moves every clock.
func (w *world) later(p *demo.Provider, d time.Duration) {
	w.pass(d)
	p.Advance(d)
}

func (w *world) status() auth.Status {
	w.t.Helper()
	r, err := w.store.Request(w.t.Context(), theRequest, only(ann))
	require.NoError(w.t, err)
	return r.Status
}

func (w *world) poll(s *oauth.Service) int {
	w.t.Helper()
	n, err := s.PollDevices(w.t.Context())
	require.NoError(w.t, err)
	return n
}

func TestDeviceCode(t *testing.T) {
	t.Parallel()
	w, p := signedIn(t)
	code := w.coded(p)
	require.Contains(t, code.Complete.Reveal(), code.UserCode.Reveal())
	asked := func() int { return p.Counts().Token["urn:ietf:params:oauth:grant-type:device_code"] }

	require.Zero(t, w.poll(w.service))
	require.Zero(t, asked(), "not before the interval is over")
	w.later(p, time.Second)
	require.Zero(t, w.poll(w.service))
	require.Equal(t, 1, asked())
	require.Equal(t, auth.StatusPending, w.status(), "nobody has answered")

	again, err := w.service.Begin(t.Context(), only(ann), "r", "")
	require.NoError(t, err)
	require.True(t, again.Device)
	require.Len(t, p.Secrets().DeviceCodes, 1, "the button again shows the same code")

	require.True(t, p.DecideDevice(code.UserCode.Reveal(), "alice", true))
	w.later(p, time.Second)
	require.Equal(t, 1, w.poll(w.service))
	require.Equal(t, auth.StatusGranted, w.status())
	require.NotZero(t, w.wakes())
	g := w.store.allGrants()[0]
	require.Equal(t, oauth.Account{Subject: demo.Subject("alice"), Label: demo.Email("alice")}, g.Account)
	token, err := w.broker().Token(t.Context(), deviceWant(p))
	require.NoError(t, err)
	require.Contains(t, p.Secrets().AccessTokens, token.Access.Reveal())
	for _, secret := range append(p.Secrets().All(), code.UserCode.Reveal()) {
		require.NotContains(t, w.logs.String(), secret)
	}
	w.later(p, time.Hour)
	require.Zero(t, w.poll(w.service))
	require.Equal(t, 2, asked(), "what has ended is asked about no more")
}

func TestDeviceCodeOnlyForTheAskedPerson(t *testing.T) {
	t.Parallel()
	w, p := signedIn(t)
	w.coded(p)
	_, err := w.service.Page(t.Context(), only(agent.Owner{App: "app", User: "eve"}), "r")
	require.ErrorIs(t, err, oauth.ErrNotFound)
	_, err = w.service.Begin(t.Context(), only(agent.Owner{App: "app", User: "eve"}), "r", "")
	require.ErrorIs(t, err, oauth.ErrNotFound)
}

// Two servers ask a provider no more often than one, and slow_down makes both slower.
func TestDevicePolledByTwoServers(t *testing.T) {
	t.Parallel()
	w, p := signedIn(t)
	p.SetFaults(func(f *demo.Faults) { f.DeviceInterval = 4 * time.Second })
	code := w.coded(p)
	second := w.another()
	for range 8 {
		w.later(p, time.Second)
		var both sync.WaitGroup
		for _, s := range []*oauth.Service{w.service, second} {
			both.Go(func() { _, _ = s.PollDevices(t.Context()) })
		}
		both.Wait()
	}
	require.Equal(t, 2, p.Counts().Token["urn:ietf:params:oauth:grant-type:device_code"])

	p.Advance(-4 * time.Second) // for the provider, the next poll comes too early
	w.later(p, 4*time.Second)
	w.poll(w.service)
	flows, err := w.store.Flows(t.Context(), "r", 1)
	require.NoError(t, err)
	require.Equal(t, 9*time.Second, flows[0].Pace, "slow_down adds five seconds")
	require.True(t, p.DecideDevice(code.UserCode.Reveal(), "alice", true))
	w.later(p, 8*time.Second)
	require.Zero(t, w.poll(second))
	w.later(p, time.Second)
	w.poll(second)
	require.Equal(t, auth.StatusGranted, w.status())
}

func TestDeviceCodeThatIsNotGiven(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		act  func(*world, *demo.Provider, *oauth.DeviceCode)
		want auth.Status
		says string
	}{
		"denied": {func(_ *world, p *demo.Provider, c *oauth.DeviceCode) {
			p.DecideDevice(c.UserCode.Reveal(), "alice", false)
		}, auth.StatusDenied, "denied r"},
		"over": {func(w *world, p *demo.Provider, _ *oauth.DeviceCode) { w.later(p, 10*time.Minute) }, auth.StatusPending, "reopened expired_token"},
		"refused": {func(_ *world, p *demo.Provider, _ *oauth.DeviceCode) {
			p.SetFaults(func(f *demo.Faults) { f.TokenError = "invalid_grant" })
		}, auth.StatusPending, "reopened device: invalid_grant"},
		"identity": {func(_ *world, p *demo.Provider, c *oauth.DeviceCode) {
			p.SetFaults(func(f *demo.Faults) { f.ForgedIDToken = true })
			p.DecideDevice(c.UserCode.Reveal(), "alice", true)
		}, auth.StatusPending, "reopened device: identity"},
		"an outage": {func(_ *world, p *demo.Provider, _ *oauth.DeviceCode) {
			p.SetFaults(func(f *demo.Faults) { f.TokenFailures = 1 })
		}, auth.StatusPending, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := signedIn(t)
			tc.act(w, p, w.coded(p))
			w.later(p, time.Second)
			w.poll(w.service)
			require.Equal(t, tc.want, w.status())
			require.Empty(t, w.store.allGrants())
			flows, err := w.store.Flows(t.Context(), "r", 1)
			require.NoError(t, err)
			if tc.says == "" {
				require.Equal(t, oauth.FlowLive, flows[0].Status)
				require.Equal(t, 2*time.Second, flows[0].Pace)
				return
			}
			require.Contains(t, w.store.audits(), tc.says)
			require.Equal(t, oauth.FlowSpent, flows[0].Status)
			require.Empty(t, flows[0].Device)
			if tc.want == auth.StatusPending {
				p.SetFaults(func(f *demo.Faults) { *f = demo.Faults{OIDCMetadata: true} })
				_, err := w.service.Begin(t.Context(), only(ann), "r", "")
				require.NoError(t, err)
				require.Len(t, p.Secrets().DeviceCodes, 2, "the button gets a new code")
			}
		})
	}
}

// The token endpoint need not be the provider's own: no answer has us ask it faster than once a second.
func TestDevicePollsSlowly(t *testing.T) {
	t.Parallel()
	w, p := signedIn(t)
	p.SetFaults(func(f *demo.Faults) { f.DeviceInterval = time.Microsecond })
	w.coded(p)
	for range 20 {
		w.later(p, 100*time.Millisecond)
		w.poll(w.service)
	}
	require.Equal(t, 2, p.Counts().Token["urn:ietf:params:oauth:grant-type:device_code"])
}
