package store_test

import (
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/session"
)

func (k *kit) remind(row session.Session, request, event string) {
	k.Helper()
	require.NoError(k, k.s.Remind(k.ctx, session.Append{Owner: row.Owner, Session: row.ID, Run: theRun}, request, reminder(event)))
}

func reminder(id string) func(auth.Request) session.NewEvent {
	return func(r auth.Request) session.NewEvent {
		e := said(id, session.KindReminder, theAgent, "")
		e.Custom = map[string]any{"number": r.Reminders}
		return e
	}
}

func reminderCases() []testCase {
	return []testCase{
		{"remind/counts, and shows beside what asks", func(k *kit) {
			row, id := k.waiting(ann, "s", "read")
			before := k.row(ann, "s").Updated
			k.clock.advance(time.Hour)
			k.remind(row, id, "n1")
			k.remind(row, id, "n1") // an attempt that was retried
			require.Equal(k, 1, k.request(id).Reminders)
			require.Equal(k, k.clock.now(), k.request(id).Reminded)
			require.True(k, k.row(ann, "s").Updated.After(before), "followers look at the log when the row has changed")
			k.clock.advance(time.Hour)
			k.remind(row, id, "n2")
			require.Equal(k, 2, k.request(id).Reminders)
			require.Equal(k, 2, count(k.audits(ann), "reminded"))
			view, err := k.s.Timeline(k.ctx, ann, "s", 0)
			require.NoError(k, err)
			require.Len(k, view, 4)
			require.EqualValues(k, 2, view[3].Custom["number"])
			require.Equal(k, []string{view[1].ID}, view[3].Parents)

			k.append(row, theRun, said("answer", session.KindResponse, theAgent, "", view[1].ID))
			require.Equal(k, []string{"answer"}, k.tips(row, theRun), "nothing follows a reminder")
			require.Len(k, k.timeline(row), 5)
		}},
		{"remind/a run that was reset before it asked shows none", func(k *kit) {
			row, id := k.waiting(ann, "s", "read")
			k.remind(row, id, "n1")
			k.append(row, "reset", said("other", session.KindModel, theAgent, ""))
			require.NotContains(k, k.timeline(row), "n1")
			k.remind(row, id, "n2")
			require.Equal(k, 1, k.request(id).Reminders, "the replaced run reminds nobody")
		}},
		{"queued/an answer is on its way until the run has acted on it", func(k *kit) {
			row, id := k.waiting(ann, "s", "read")
			queued := func() [2]bool {
				message, answer, err := k.s.Queued(k.ctx, row, inv)
				require.NoError(k, err)
				return [2]bool{message, answer}
			}
			require.Equal(k, [2]bool{}, queued())
			k.post(row, "in-2", "inv-2", "Never mind.")
			require.Equal(k, [2]bool{true, false}, queued())
			k.exchanging(id)
			require.Equal(k, [2]bool{true, true}, queued(), "a login is being completed")
			k.finish(row)
			require.Equal(k, [2]bool{true, false}, queued())
			_, answer, err := k.s.Queued(k.ctx, row, "another")
			require.NoError(k, err)
			require.False(k, answer)
		}},
		{"remind/nobody of what has ended, or of another session's", func(k *kit) {
			row, id := k.waiting(ann, "s", "read")
			other, _ := k.waiting(bob, "s", "read")
			err := k.s.Remind(k.ctx, session.Append{Owner: other.Owner, Session: other.ID, Run: theRun}, id, reminder("n"))
			require.ErrorIs(k, err, oauth.ErrNotFound)
			k.finish(row)
			k.remind(row, id, "n")
			require.Zero(k, k.request(id).Reminders)
			require.Zero(k, k.request(id).Reminded)
			require.NotContains(k, k.timeline(row), "n")
		}},
	}
}
