package stream

import (
	"context"
	"slices"
	"time"

	"tarry/session"
)

// late is how long a piece may take to be seen after one with a higher number: PostgreSQL commits out of order what its
// sequences number.
const late = 2 * time.Second

// pieces are what a reader was told of answers that are not stored yet.
type pieces struct {
	told map[int64]bool
	// Everything up to floor was seen at least late ago, up to mark since rolled.
	floor, mark, top int64
	rolled           time.Time
}

func newPieces(after int64) pieces {
	return pieces{told: map[int64]bool{}, floor: after, mark: after, top: after, rolled: time.Now()}
}

// listen reads the pieces that the reader has not been told. A session has some only while its client reads along.
func (f *follower) listen(ctx context.Context) ([]session.Partial, error) {
	if f.o.Partials == nil || !f.row.Streaming {
		return nil, nil
	}
	all, err := f.o.Partials.Partials(ctx, f.row, f.pieces.floor)
	if err != nil {
		return nil, err //nolint:wrapcheck // Follow wraps
	}
	return slices.DeleteFunc(all, func(p session.Partial) bool {
		return f.pieces.told[p.Seq] || f.o.Invocation != "" && p.Invocation != f.o.Invocation
	}), nil
}

// tell emits the pieces of one event, or with none named those whose event is not stored.
func (f *follower) tell(all []session.Partial, event string) error {
	for _, p := range all {
		if f.pieces.told[p.Seq] || event != "" && p.Of != event || event == "" && f.known[p.Of] != nil {
			continue
		}
		if err := f.o.EmitPartial(p); err != nil {
			return err
		}
		f.pieces.told[p.Seq] = true
		f.pieces.top = max(f.pieces.top, p.Seq)
		f.heard = time.Now()
	}
	if now := time.Now(); now.Sub(f.pieces.rolled) > late {
		f.pieces.floor, f.pieces.mark, f.pieces.rolled = f.pieces.mark, f.pieces.top, now
		for seq := range f.pieces.told {
			if seq <= f.pieces.floor {
				delete(f.pieces.told, seq)
			}
		}
	}
	return nil
}
