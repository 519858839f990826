package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"tarry/agent"
	"tarry/auth"
)

// Store keeps deliveries.
type Store interface {
	// ListenWebhooks says which endpoints there are. Changes write deliveries for those that have been named here during the
	// last days, by any server. An endpoint that was gone is back when its URL has changed.
	ListenWebhooks(ctx context.Context, endpoints []Endpoint) error
	// DueWebhooks claims deliveries to an endpoint that are due, for that long: nobody else gets them meanwhile.
	DueWebhooks(ctx context.Context, endpoint string, limit int, claim time.Duration) ([]Delivery, error)
	// EndWebhook records an attempt. Gone ends all deliveries to the endpoint.
	EndWebhook(ctx context.Context, d Delivery, o Outcome) error
}

// Config of a [Sender]. Every field is required unless it says otherwise.
type Config struct {
	Store     Store
	Endpoints []Endpoint
	// HTTP is the guarded client, with a time limit shorter than Claim.
	HTTP *http.Client
	// Secrets resolves references.
	Secrets func(context.Context, agent.Source) (auth.Secret, error)
	// PublicURL is what links begin with.
	PublicURL string
	Log       *slog.Logger
	// Poll is how often to look for deliveries; 0 means a second.
	Poll time.Duration
}

// Timeout bounds one attempt; the specification asks for 15 to 30 seconds.
const Timeout = 20 * time.Second

const (
	claim       = Timeout + 20*time.Second
	parallel    = 8
	defaultPoll = time.Second
	listenEvery = 10 * time.Minute
	patience    = 10 * time.Second
)

// Sender delivers webhooks. Any number of servers may have one.
type Sender struct{ cfg Config }

// New makes a sender, and checks that every secret is there and has its form.
func New(ctx context.Context, c Config) (*Sender, error) {
	if c.Poll == 0 {
		c.Poll = defaultPoll
	}
	s := &Sender{cfg: c}
	var errs []error
	for _, e := range c.Endpoints {
		secrets, err := s.secrets(ctx, e)
		for _, secret := range secrets {
			if _, bad := key(secret); bad != nil {
				err = errors.Join(err, bad)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("webhook %s: secrets: %w", e.Name, err))
		}
	}
	return s, errors.Join(errs...)
}

// Run delivers until ctx ends. Endpoints do not hold each other up.
func (s *Sender) Run(ctx context.Context) {
	if len(s.cfg.Endpoints) == 0 {
		return
	}
	var group sync.WaitGroup
	defer group.Wait()
	for _, e := range s.cfg.Endpoints {
		group.Go(func() { s.serve(ctx, e) })
	}
	tick := time.NewTicker(listenEvery)
	defer tick.Stop()
	for {
		if err := s.cfg.Store.ListenWebhooks(ctx, s.cfg.Endpoints); err != nil && ctx.Err() == nil {
			s.cfg.Log.WarnContext(ctx, "announce webhooks", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Sender) serve(ctx context.Context, e Endpoint) {
	tick := time.NewTicker(s.cfg.Poll)
	defer tick.Stop()
	for {
		for more := true; more; {
			more = s.Round(ctx, e) == parallel
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Round delivers what is due to an endpoint at this moment, up to a few, and returns how many that were.
func (s *Sender) Round(ctx context.Context, e Endpoint) int {
	due, err := s.cfg.Store.DueWebhooks(ctx, e.Name, parallel, claim)
	if err != nil && ctx.Err() == nil {
		s.cfg.Log.WarnContext(ctx, "read webhooks", "err", err)
	}
	var group sync.WaitGroup
	for _, d := range due {
		group.Go(func() { s.one(ctx, e, d) })
	}
	group.Wait()
	return len(due)
}

func (s *Sender) one(ctx context.Context, e Endpoint, d Delivery) {
	code, header, err := s.post(ctx, e, d)
	if err != nil && ctx.Err() != nil {
		return // the claim runs out by itself
	}
	o := judge(code, header, d.Attempts+1)
	log := s.cfg.Log.With("webhook", e.Name, "webhook_id", d.ID, "type", d.Type, "attempt", d.Attempts+1)
	switch o.Status {
	case Delivered:
		log.DebugContext(ctx, "webhook delivered")
	case Pending:
		log.WarnContext(ctx, "webhook was not taken", "reason", o.Reason, "err", err, "next", o.Next.String())
	case Failed, Gone:
		log.ErrorContext(ctx, "webhook given up", "reason", o.Reason, "err", err)
	}
	record, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := s.cfg.Store.EndWebhook(record, d, o); err != nil {
		log.WarnContext(record, "record webhook", "err", err)
	}
}

// post returns the answer's status, 0 where there is none. Errors do not have the URL, whose path may be a secret.
func (s *Sender) post(ctx context.Context, e Endpoint, d Delivery) (int, http.Header, error) {
	raw, err := render(d, s.cfg.PublicURL)
	if err != nil {
		return 0, nil, err
	}
	secrets, err := s.secrets(ctx, e)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(raw))
	if err != nil {
		return 0, nil, errors.New("make request") //nolint:err113 // the error has the URL
	}
	req.Header.Set("Content-Type", "application/json")
	if err := sign(req.Header, d.ID, time.Now(), raw, secrets); err != nil {
		return 0, nil, err
	}
	resp, err := s.cfg.HTTP.Do(req)
	if err != nil {
		var bare *url.Error
		if errors.As(err, &bare) {
			err = bare.Err
		}
		return 0, nil, fmt.Errorf("post: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection is used again
	return resp.StatusCode, resp.Header, nil
}

func (s *Sender) secrets(ctx context.Context, e Endpoint) (out []auth.Secret, err error) {
	for _, ref := range e.Secrets {
		source, err := ref.Parse()
		if err != nil {
			return nil, fmt.Errorf("secret: %w", err)
		}
		secret, err := s.cfg.Secrets(ctx, source)
		if err != nil {
			return nil, fmt.Errorf("secret: %w", err)
		}
		out = append(out, secret)
	}
	return out, nil
}
