package scripted

import (
	"context"
	"iter"
	"time"

	"tarry/models"
)

// Observed writes to the journal what another model is asked, so that checks of journals hold for it too. A call that cannot
// be written fails.
func Observed(model models.Model, journal string) models.Model {
	return observed{Model: model, journal: journal}
}

type observed struct {
	models.Model
	journal string
}

// GenerateContent implements [models.Model].
func (o observed) GenerateContent(ctx context.Context, req *models.Request, stream bool) iter.Seq2[*models.Response, error] {
	record := Record{Time: time.Now(), Model: req.Model, Agent: req.Agent, Invocation: req.Invocation}
	record.shape(req.Contents)
	if err := (options{journal: o.journal}).note(record); err != nil {
		return func(yield func(*models.Response, error) bool) {
			yield(nil, &models.Error{Kind: models.KindInvalid, Provider: Provider, Message: err.Error()})
		}
	}
	return o.Model.GenerateContent(ctx, req, stream)
}
