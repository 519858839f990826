// Package models is the vocabulary of language models: a [Model] turns a [Request] into [Response]s, an [Error] carries
// the decision whether the call may be repeated, a [Registry] finds a model by the name in an agent's definition.
//
// It must not speak to a provider; each provider is a package below it, and only wiring imports those. It must not know
// Temporal, sessions or tools. A model makes one HTTP request for one call and never retries by itself: whoever calls it
// (the model activity) owns retries.
//
// Contents are those of google.golang.org/genai, and the interface has the shape of ADK's model.LLM, so that an adapter
// in either direction is a few lines.
package models
