package store_test

import (
	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
)

func confirmationNeed(o agent.Owner, call string, own bool) auth.Need {
	return auth.Need{Type: auth.TypeConfirmation, Slot: auth.ConfirmationSlot(o, call, own), Tool: "send", Input: []byte("sealed arguments")}
}

// An approval is for one call of one session, and for one of those who ask for it.
func confirmationCases() []testCase {
	return []testCase{
		{"confirmation/one call, one asker", func(k *kit) {
			row, other := k.session(ann, "s"), k.session(ann, "t")
			first := k.ask(row, "", "r1", confirmationNeed(ann, "c", false)).Request
			require.Equal(k, first.ID, k.ask(row, "", "r2", confirmationNeed(ann, "c", false)).Request.ID, "a run that was reset finds what is open")
			second := k.ask(row, "", "r3", confirmationNeed(ann, "d", false)).Request
			own := k.ask(row, "", "r4", confirmationNeed(ann, "c", true)).Request
			require.NotEqual(k, first.ID, second.ID)
			require.NotEqual(k, first.ID, own.ID)
			require.NotEqual(k, first.Leader, second.Leader, "no link is shared")

			status, err := k.s.AnswerInput(k.ctx, first.ID, anyone, []byte("yes"), auth.StatusGranted)
			require.NoError(k, err)
			require.Equal(k, auth.StatusGranted, status)
			for _, id := range []string{second.ID, own.ID} {
				require.Equal(k, auth.StatusPending, k.request(id).Status)
			}
			found, ok, err := k.s.Answered(k.ctx, row, first.Need.Slot)
			require.NoError(k, err)
			require.True(k, ok)
			require.Equal(k, first.ID, found.ID)
			for _, slot := range []auth.Slot{second.Need.Slot, own.Need.Slot} {
				_, ok, err = k.s.Answered(k.ctx, row, slot)
				require.NoError(k, err)
				require.False(k, ok)
			}
			_, ok, err = k.s.Answered(k.ctx, other, first.Need.Slot)
			require.NoError(k, err)
			require.False(k, ok, "not in another session")
			require.Equal(k, 1, count(k.audits(ann), "granted"))
		}},
		{"confirmation/asked once more", func(k *kit) {
			row := k.session(ann, "s")
			first := k.ask(row, "", "r1", confirmationNeed(ann, "c", true)).Request
			_, err := k.s.AnswerInput(k.ctx, first.ID, anyone, []byte("yes"), auth.StatusGranted)
			require.NoError(k, err)
			again := k.ask(row, "", "r2", confirmationNeed(ann, "c", true))
			require.False(k, again.Granted, "an approval answers no later question")
			require.Equal(k, "r2", again.Request.ID)
			_, err = k.s.AnswerInput(k.ctx, again.Request.ID, anyone, []byte("no"), auth.StatusDenied)
			require.NoError(k, err)
			require.True(k, k.ask(row, "", "r3", confirmationNeed(ann, "c", true)).Denied, "nobody is asked after a rejection")
		}},
	}
}
