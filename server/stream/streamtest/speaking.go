package streamtest

import (
	"strconv"

	"google.golang.org/genai"

	"tarry/session"
)

// Speaking is an answer that a model is still giving.
type Speaking struct {
	p *Player
	e session.NewEvent
	n int
}

// Speaking begins an answer.
func (p *Player) Speaking() *Speaking {
	p.tb.Helper()
	return &Speaking{p: p, e: p.event(session.KindModel, &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{}}})}
}

// Piece tells the next words to those who read along.
func (s *Speaking) Piece(text string) {
	s.p.tb.Helper()
	s.n++
	s.e.Content.Parts[0].Text += text
	piece := s.e.Event
	piece.ID += "-" + strconv.Itoa(s.n)
	piece.Partial, piece.Content = true, &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{Text: text}}}
	check(s.p.tb, s.p.Store.AddPartial(s.p.tb.Context(), s.p.Row, s.e.ID, piece))
}

// End appends the whole answer.
func (s *Speaking) End() *session.Record {
	s.p.tb.Helper()
	add := s.p.add(s.e)
	add.Whole = s.e.ID
	s.p.Heads = []string{s.e.ID}
	return s.p.append(add)
}
