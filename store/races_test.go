package store_test

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/auth/oauth"
)

func raceCases() []testCase {
	return []testCase{
		{"races/a deadline and a login: one of them", func(k *kit) {
			second := k.handle()
			for i := range 20 {
				row, request := k.waiting(ann, fmt.Sprint("s", i), fmt.Sprint("scope", i))
				state := k.begun(request)
				var wait sync.WaitGroup
				var closed auth.Status
				var committed error
				wait.Go(func() {
					var err error
					closed, err = k.s.CloseRequest(k.ctx, row, request)
					if err != nil {
						closed = auth.Status(err.Error())
					}
				})
				wait.Go(func() {
					_, committed = second.StartExchange(k.ctx, state, []byte("sealed"), "h", time.Minute)
					if committed == nil {
						_, committed = second.Commit(k.ctx, state, grant(fmt.Sprint("scope", i)))
					}
				})
				wait.Wait()
				status := k.request(request).Status
				if committed == nil {
					require.Equal(k, auth.StatusGranted, status)
					require.Contains(k, []auth.Status{auth.StatusPending, auth.StatusExchanging, auth.StatusGranted}, closed)
				} else {
					require.ErrorIs(k, committed, oauth.ErrConflict)
					require.Equal(k, auth.StatusExpired, status)
					require.Equal(k, auth.StatusExpired, closed)
				}
			}
			expired, granted := count(k.audits(ann), "expired"), count(k.audits(ann), "granted")
			require.Equal(k, 20, expired+granted, "each ended once")
			require.Len(k, k.outgoing(), granted)
		}},
		// The lost wake-up: a grant that lands between "there is no token" and "there is an open request".
		{"races/no request is left waiting for a login that has been", func(k *kit) {
			const pairs = 200
			second := k.handle()
			askers, givers := make([]string, pairs), make([]string, pairs)
			for i := range pairs {
				row := k.session(ann, fmt.Sprint("ask", i))
				k.session(ann, fmt.Sprint("give", i))
				askers[i], givers[i] = row.ID, fmt.Sprint("give", i)
			}
			errs := make(chan error, 4*pairs)
			work := make(chan func() error)
			var workers sync.WaitGroup
			for range 16 {
				workers.Go(func() {
					for f := range work {
						if err := f(); err != nil {
							errs <- err
						}
					}
				})
			}
			for i := range pairs {
				work <- func() error { return k.giveOnce(second, givers[i]) }
				work <- func() error { return k.askOnce(askers[i]) }
			}
			close(work)
			workers.Wait()
			close(errs)
			for err := range errs {
				require.NoError(k, err)
			}

			g := k.grants(ann)
			require.Len(k, g, 1)
			all, err := k.s.Requests(k.ctx, ann, false, 10*pairs)
			require.NoError(k, err)
			messages := k.outgoing()
			granted := 0
			for _, r := range all {
				switch r.Status {
				case auth.StatusGranted:
					granted++
					require.Contains(k, messages, r.ID, "granted without a message")
				case auth.StatusPending:
					require.GreaterOrEqual(k, r.Need.Refused, g[0].Version, "waits although a newer login is there")
				default:
					require.Fail(k, "unexpected status", "%s is %s", r.ID, r.Status)
				}
			}
			require.Len(k, messages, granted)
		}},
	}
}

// askOnce asks as a tool does whose server has refused the token that is there.
func (k *kit) askOnce(id string) error {
	sl := slot(ann)
	found, err := k.s.Grants(k.ctx, oauth.GrantQuery{Owner: ann, Resource: sl.Resource, Client: sl.Client})
	if err != nil {
		return err
	}
	n := need(ann, "read")
	if len(found) > 0 {
		n.Refused = found[0].Version
	}
	row, err := k.s.Session(k.ctx, ann, id)
	if err != nil {
		return err
	}
	a, r := question(row, "", "req-"+id, n)
	_, err = k.s.Ask(k.ctx, a, r, render(a))
	return err
}

// giveOnce opens a request of its own and answers it; another login may answer it first.
func (k *kit) giveOnce(s interface {
	BeginFlow(ctx ctxT, f oauth.Flow, live int) error
	StartExchange(ctx ctxT, stateHash string, code []byte, codeHash string, lease time.Duration) (oauth.Flow, error)
	Commit(ctx ctxT, stateHash string, g oauth.Grant) ([]auth.Request, error)
}, id string,
) error {
	if err := k.askOnce(id); err != nil {
		return err
	}
	r, err := k.s.Request(k.ctx, "req-"+id, anyone)
	if errors.Is(err, oauth.ErrNotFound) { // granted meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	f := oauth.Flow{StateHash: "state-" + id, Request: r.ID, Owner: r.Owner, Expires: k.clock.now().Add(time.Hour)}
	if err = s.BeginFlow(k.ctx, f, 9); err == nil {
		_, err = s.StartExchange(k.ctx, f.StateHash, []byte("sealed"), "h", time.Minute)
	}
	if err == nil {
		_, err = s.Commit(k.ctx, f.StateHash, grant("read"))
	}
	if errors.Is(err, oauth.ErrConflict) {
		return nil
	}
	return err
}
