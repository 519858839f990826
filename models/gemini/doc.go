// Package gemini is the Gemini API as a [models.Model], over google.golang.org/genai.
//
// It owns the translation of answers and errors and the aggregation of streams. It must not read the environment,
// retry, or continue an answer by further requests: one call is one HTTP request. Wiring registers its [Factory] under
// the prefix "gemini".
package gemini
