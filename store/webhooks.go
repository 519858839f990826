package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/google/uuid"

	"tarry/auth"
	"tarry/notify"
)

var _ notify.Store = (*Store)(nil)

const (
	// listenedFor is how long an endpoint that no server names any more gets deliveries, in case all servers are down.
	listenedFor = 7 * 24 * time.Hour
	// warnAhead is how long before a deadline its person is about to miss it, at most; less for short deadlines.
	warnAhead = 24 * time.Hour
)

// ListenWebhooks implements [notify.Store].
func (s *Store) ListenWebhooks(ctx context.Context, endpoints []notify.Endpoint) error {
	return s.tx(ctx, func(c *conn) error {
		for _, e := range endpoints {
			apps, err := encode(e.Apps)
			if err != nil {
				return err
			}
			types, err := encode(e.Types)
			if err != nil {
				return err
			}
			sum := sha256.Sum256([]byte(e.URL))
			if _, err := c.exec(`INSERT INTO webhooks (name, apps, types, digest, gone, paused, seen) VALUES (?, ?, ?, ?, 0, 0, ?) ON CONFLICT (name) DO UPDATE SET
				apps = excluded.apps, types = excluded.types, seen = excluded.seen,
				gone = CASE WHEN webhooks.digest = excluded.digest THEN webhooks.gone ELSE 0 END,
				paused = CASE WHEN webhooks.digest = excluded.digest THEN webhooks.paused ELSE 0 END, digest = excluded.digest`,
				e.Name, apps, types, hex.EncodeToString(sum[:]), c.now); err != nil {
				return err
			}
		}
		return nil
	})
}

// notify writes what happened to a request for every endpoint that takes it, in the transaction of the change.
func (c *conn) notify(r auth.Request, what string) error {
	endpoints, err := collect(c, `SELECT name, apps, types FROM webhooks WHERE gone = 0 AND seen > ? ORDER BY name`, []any{c.now - listenedFor.Microseconds()},
		func(scan func(...any) error) (e notify.Endpoint, err error) {
			var apps, types string
			if err := scan(&e.Name, &apps, &types); err != nil {
				return e, err
			}
			if err := decode(apps, &e.Apps); err != nil {
				return e, err
			}
			return e, decode(types, &e.Types)
		})
	if err != nil {
		return err
	}
	for _, e := range endpoints {
		if err := c.deliver(e, r, what, c.now); err != nil {
			return err
		}
		if what == notify.Asked && !r.Deadline.IsZero() {
			left := micros(r.Deadline) - c.now
			if err := c.deliver(e, r, notify.Expiring, micros(r.Deadline)-min(left/4, warnAhead.Microseconds())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *conn) deliver(e notify.Endpoint, r auth.Request, what string, due int64) error {
	kind := notify.TypeOf(r.Need, what)
	if !e.Takes(r.Owner.App, kind) {
		return nil
	}
	_, err := c.exec(`INSERT INTO deliveries (id, endpoint, type, request, status, attempts, code, reason, due, created, ended) VALUES (?, ?, ?, ?, 'pending', 0, 0, '', ?, ?, 0)`,
		"msg_"+uuid.NewString(), e.Name, kind, r.ID, due, due)
	return err
}

// unwarn drops the warnings of a request that is over.
func (c *conn) unwarn(r auth.Request) error {
	_, err := c.exec(`DELETE FROM deliveries WHERE request = ? AND status = 'pending' AND attempts = 0 AND due > ? AND type = ?`, r.ID, c.now, notify.TypeOf(r.Need, notify.Expiring))
	return err
}

// DueWebhooks implements [notify.Store].
func (s *Store) DueWebhooks(ctx context.Context, endpoint string, limit int, claim time.Duration) (out []notify.Delivery, err error) {
	c, err := s.timed(ctx)
	if err != nil {
		return nil, err
	}
	query := `WITH claimed AS (SELECT seq FROM deliveries WHERE endpoint = ? AND status = 'pending' AND due <= ?
			AND NOT EXISTS (SELECT 1 FROM webhooks WHERE name = ? AND (paused > ? OR gone > 0)) ORDER BY due, seq LIMIT ?` + s.d.skipLocked + `)
		UPDATE deliveries SET due = ? WHERE seq IN (SELECT seq FROM claimed) RETURNING id, endpoint, type, request, attempts, created`
	found, err := collect(c, query, []any{endpoint, c.now, endpoint, c.now, limit, c.now + claim.Microseconds()}, func(scan func(...any) error) (d notify.Delivery, err error) {
		var created int64
		err = scan(&d.ID, &d.Endpoint, &d.Type, &d.Request.ID, &d.Attempts, &created)
		d.At = at(created)
		return d, err
	})
	if err != nil {
		return nil, err
	}
	for _, d := range found {
		if d.Request, err = c.request(d.Request.ID); err != nil {
			return nil, err // requests stay
		}
		out = append(out, d)
	}
	return out, nil
}

// EndWebhook implements [notify.Store].
func (s *Store) EndWebhook(ctx context.Context, d notify.Delivery, o notify.Outcome) error {
	return s.tx(ctx, func(c *conn) error {
		var ended int64
		if o.Status != notify.Pending {
			ended = c.now
		}
		if _, err := c.exec(`UPDATE deliveries SET status = ?, attempts = attempts + 1, code = ?, reason = ?, due = ?, ended = ? WHERE id = ? AND status = 'pending'`,
			string(o.Status), o.Code, o.Reason, c.now+o.Next.Microseconds(), ended, d.ID); err != nil {
			return err
		}
		if o.Pause > 0 {
			if _, err := c.exec(`UPDATE webhooks SET paused = ? WHERE name = ?`, c.now+o.Pause.Microseconds(), d.Endpoint); err != nil {
				return err
			}
		}
		if o.Status != notify.Gone {
			return nil
		}
		if _, err := c.exec(`UPDATE webhooks SET gone = ? WHERE name = ?`, c.now, d.Endpoint); err != nil {
			return err
		}
		_, err := c.exec(`UPDATE deliveries SET status = 'gone', ended = ? WHERE endpoint = ? AND status = 'pending'`, c.now, d.Endpoint)
		return err
	})
}

// Webhook is a delivery as operators see it.
type Webhook struct {
	ID       string        `json:"id"`
	Endpoint string        `json:"endpoint"`
	Type     string        `json:"type"`
	Request  string        `json:"request"`
	Status   notify.Status `json:"status"`
	Attempts int           `json:"attempts"`
	Code     int           `json:"code,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Created  time.Time     `json:"created"`
	// Due is when it is tried again.
	Due time.Time `json:"due,omitzero"`
}

// Webhooks lists deliveries, newest first: without all, those that have not been delivered.
func (s *Store) Webhooks(ctx context.Context, all bool, limit int) ([]Webhook, error) {
	where := ` WHERE status <> 'delivered'`
	if all {
		where = ``
	}
	return collect(s.read(ctx), `SELECT id, endpoint, type, request, status, attempts, code, reason, due, created FROM deliveries`+where+` ORDER BY seq DESC LIMIT ?`, []any{limit},
		func(scan func(...any) error) (w Webhook, err error) {
			var due, created int64
			err = scan(&w.ID, &w.Endpoint, &w.Type, &w.Request, &w.Status, &w.Attempts, &w.Code, &w.Reason, &due, &created)
			w.Created = at(created)
			if w.Status == notify.Pending {
				w.Due = at(due)
			}
			return w, err
		})
}
