package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/discovery"
	"tarry/auth/vault"
)

const (
	grantTypeDevice = "urn:ietf:params:oauth:grant-type:device_code"
	// devicePace is how long to wait between polls where the provider does not say (RFC 8628 section 3.2), deviceSlower what
	// slow_down adds to it (section 3.5).
	devicePace   = 5 * time.Second
	deviceSlower = 5 * time.Second
	maxPace      = time.Minute
	// minPace keeps a provider from having us send requests to its token endpoint, which may be somebody else's, as fast as we can.
	minPace = time.Second
	// deviceLife bounds a login on another device, whatever the provider says.
	deviceLife  = 30 * time.Minute
	maxUserCode = 64
)

// DeviceCode is what a person takes to another device (RFC 8628 section 3.2). Whoever has it can answer with an account of
// their own, so it is shown to the asked person alone.
type DeviceCode struct {
	UserCode auth.Secret
	// URI is where it is typed in; Complete has it in the address, and may be empty.
	URI      string
	Complete auth.Secret
	Expires  time.Time
	// Pace is how often it is worth looking again.
	Pace time.Duration
}

// deviceSecrets is what a flow keeps of them, encrypted.
type deviceSecrets struct {
	DeviceCode string `json:"device_code"`
	UserCode   string `json:"user_code"`
	URI        string `json:"verification_uri"`
	Complete   string `json:"verification_uri_complete,omitempty"`
}

func (s *Service) openDevice(f Flow) (d deviceSecrets, err error) {
	plain, err := s.unseal(f.Device, f.ad(columnDevice))
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal([]byte(plain.Reveal()), &d); err != nil {
		return d, fmt.Errorf("decode device code: %w", vault.ErrCipher)
	}
	return d, nil
}

// liveDevice finds the login on another device that a request has under way.
func (s *Service) liveDevice(ctx context.Context, requestID string) (Flow, bool, error) {
	flows, err := s.cfg.Store.Flows(ctx, requestID, liveFlows)
	if err != nil {
		return Flow{}, false, fmt.Errorf("find login: %w", err)
	}
	for _, f := range flows {
		if f.Status == FlowLive && len(f.Device) > 0 && s.cfg.Now().Before(f.Expires) {
			return f, true, nil
		}
	}
	return Flow{}, false, nil
}

// deviceCode is what the page of a request shows, nil while nothing is under way.
func (s *Service) deviceCode(ctx context.Context, r auth.Request) (*DeviceCode, error) {
	if !r.Need.Device || !r.Status.Open() {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	f, ok, err := s.liveDevice(ctx, r.ID)
	if err != nil || !ok {
		return nil, err
	}
	d, err := s.openDevice(f)
	if err != nil {
		return nil, err
	}
	return &DeviceCode{
		UserCode: auth.NewSecret(d.UserCode), URI: d.URI, Complete: auth.NewSecret(d.Complete), Expires: f.Expires, Pace: f.Pace,
	}, nil
}

// beginDevice gets a code and starts polling, unless that is under way.
func (s *Service) beginDevice(ctx context.Context, r auth.Request, shown string) (*Started, error) {
	_, live, err := s.liveDevice(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	if live {
		return &Started{Device: true, Correlator: r.Correlator}, nil
	}
	f, _, err := s.newFlow(ctx, r)
	if err != nil {
		return nil, err
	}
	f.Verifier, f.Nonce, f.Shown = nil, nil, shown
	d, err := s.requestDevice(ctx, &f)
	if err != nil {
		return nil, explain(f, err)
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode device code: %w", err)
	}
	if f.Device, err = s.seal(auth.NewSecret(string(raw)), f.ad(columnDevice)); err != nil {
		return nil, err
	}
	switch err := s.cfg.Store.BeginFlow(ctx, f, liveFlows); {
	case errors.Is(err, ErrConflict):
		return nil, ErrBusy
	case err != nil:
		return nil, fmt.Errorf("begin login: %w", err)
	}
	s.cfg.Fault(ctx, FaultBegun)
	return &Started{Device: true, Correlator: r.Correlator}, nil
}

// requestDevice is RFC 8628 section 3.1 and 3.2. It sets how long the flow lives and how fast it polls.
func (s *Service) requestDevice(ctx context.Context, f *Flow) (d deviceSecrets, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.ExchangeTimeout)
	defer cancel()
	host := discovery.Host(f.Provider.DeviceEndpoint)
	secret, err := s.clientSecret(ctx, f.Client, f.ClientSecret, f.ad(columnClientSecret))
	if err != nil {
		return d, err
	}
	form := url.Values{"client_id": {f.Client.ID}}
	if len(f.Scopes) > 0 {
		form.Set("scope", strings.Join(f.Scopes, " "))
	}
	if f.Resource != "" {
		form.Set("resource", f.Resource)
	}
	resp, err := s.post(ctx, f.Provider, f.Client, secret, f.Provider.DeviceEndpoint, form)
	if err != nil {
		return d, err
	}
	var body struct {
		deviceSecrets
		VerificationURL string  `json:"verification_url"` // Google's, from before the RFC
		Expires         float64 `json:"expires_in"`
		Interval        float64 `json:"interval"`
		Error           string  `json:"error"`
	}
	err = json.Unmarshal(resp.body, &body)
	switch {
	case resp.status == http.StatusTooManyRequests || resp.status >= http.StatusInternalServerError:
		return d, fmt.Errorf("%w: device endpoint of %s: HTTP %d", auth.ErrUnavailable, host, resp.status)
	case err == nil && body.Error != "":
		return d, newProviderError(body.Error)
	case err != nil || resp.status != http.StatusOK:
		return d, fmt.Errorf("%w: device endpoint of %s: HTTP %d without a usable answer", auth.ErrUnavailable, host, resp.status)
	}
	d = body.deviceSecrets
	if d.URI == "" {
		d.URI = body.VerificationURL
	}
	if d.DeviceCode == "" || !visible(d.UserCode) || !browsable(d.URI) {
		return deviceSecrets{}, misconfigured("%s answers with a device code that cannot be shown", host)
	}
	if there, _ := discovery.Origin(d.Complete); !browsable(d.Complete) || there != originOf(d.URI) {
		d.Complete = ""
	}
	f.Pace, f.Expires = devicePace, f.Created.Add(deviceLife)
	if body.Interval > 0 {
		f.Pace = max(minPace, time.Duration(min(body.Interval, maxPace.Seconds())*float64(time.Second)))
	}
	if body.Expires > 0 {
		f.Expires = f.Created.Add(time.Duration(min(body.Expires, deviceLife.Seconds()) * float64(time.Second)))
	}
	return d, nil
}

func originOf(address string) string {
	origin, _ := discovery.Origin(address)
	return origin
}

func visible(code string) bool {
	return code != "" && len(code) <= maxUserCode && !strings.ContainsFunc(code, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) })
}

// browsable says whether a person may be sent to an address.
func browsable(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http" && discovery.IsLoopback(u.Hostname()))
}

const pollBatch = 20

// PollDevices asks providers about the logins on other devices that are due. Several processes may call it at once, as often
// as they like: each login is asked about by one of them, no faster than its provider wants. It returns how many have ended.
func (s *Service) PollDevices(ctx context.Context) (int, error) {
	flows, err := s.cfg.Store.DueDevices(ctx, pollBatch, s.lease())
	if err != nil {
		return 0, fmt.Errorf("list logins on other devices: %w", err)
	}
	ended := 0
	var failed []error
	for _, f := range flows {
		done, err := s.pollDevice(ctx, f)
		if err != nil {
			failed = append(failed, err)
		}
		if done {
			ended++
		}
	}
	return ended, errors.Join(failed...)
}

// pollDevice is one device access token request (RFC 8628 sections 3.4 and 3.5).
func (s *Service) pollDevice(ctx context.Context, f Flow) (ended bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.ExchangeTimeout+leaseMargin/2)
	defer cancel()
	// Only the asked person was shown the code.
	access := only(f)
	if !s.cfg.Now().Before(f.Expires) {
		return true, s.endDevice(ctx, f, "expired_token")
	}
	got, err := s.redeemDevice(ctx, f)
	switch code := providerCode(err); {
	case err == nil:
	case code == "authorization_pending":
		return false, s.polled(ctx, f, f.Pace)
	case errors.Is(err, errSlowDown):
		return false, s.polled(ctx, f, f.Pace+deviceSlower)
	case code == codeAccessDenied:
		_, err := s.deny(ctx, access, f)
		return true, err
	case errors.Is(err, auth.ErrUnavailable):
		return false, s.polled(ctx, f, min(2*f.Pace, maxPace)) // a provider that does not answer is asked more slowly
	default:
		s.cfg.Log.WarnContext(ctx, "login not completed", "request_id", f.Request, "provider", discovery.Host(f.Provider.TokenEndpoint), "err", explain(f, err))
		return true, s.endDevice(ctx, f, "device: "+reasonOf(err))
	}
	s.cfg.Fault(ctx, FaultExchanged)
	out, err := s.commit(ctx, access, f, got)
	if out.Outcome.Open() {
		// The code is spent. The tokens of another account than the connected one end here too: no browser is bound to this
		// login that could be asked whether they replace it.
		reason := "device: " + reasonOf(err)
		if err == nil || errors.Is(err, ErrOtherAccount) {
			reason, err = "device: another account", nil
		}
		err = errors.Join(err, s.endDevice(ctx, f, reason))
	}
	return true, err
}

func only(f Flow) auth.Access { return func(o agent.Owner) bool { return o == f.Owner } }

func (s *Service) redeemDevice(ctx context.Context, f Flow) (tokens, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.ExchangeTimeout)
	defer cancel()
	d, err := s.openDevice(f)
	if err != nil {
		return tokens{}, err
	}
	secret, err := s.clientSecret(ctx, f.Client, f.ClientSecret, f.ad(columnClientSecret))
	if err != nil {
		return tokens{}, err
	}
	form := url.Values{"grant_type": {grantTypeDevice}, "device_code": {d.DeviceCode}, "client_id": {f.Client.ID}}
	if f.Resource != "" {
		form.Set("resource", f.Resource)
	}
	got, err := s.requestTokens(ctx, f.Provider, f.Client, secret, form)
	if err != nil {
		return tokens{}, err
	}
	got.identity, err = s.identify(ctx, f.Provider, f.Client.ID, got.id, auth.Secret{})
	if err != nil {
		return tokens{}, fmt.Errorf("identify: %w", endOfCode(err))
	}
	return got, nil
}

// endOfCode keeps an outage after the tokens were given out from being taken for one before: the code is spent.
func endOfCode(err error) error {
	if errors.Is(err, auth.ErrUnavailable) {
		return ErrIdentity
	}
	return err
}

func (s *Service) polled(ctx context.Context, f Flow, pace time.Duration) error {
	if err := s.cfg.Store.DevicePolled(ctx, f.StateHash, min(pace, maxPace)); err != nil {
		return fmt.Errorf("record poll: %w", err)
	}
	return nil
}

// endDevice ends one attempt; the request waits for another.
func (s *Service) endDevice(ctx context.Context, f Flow, reason string) error {
	if err := s.cfg.Store.EndDevice(ctx, f.StateHash, reason); err != nil && !errors.Is(err, ErrConflict) {
		return fmt.Errorf("end login: %w", err)
	}
	return nil
}
