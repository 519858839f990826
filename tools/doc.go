// Package tools is the vocabulary of tools: what a model is told about one ([Declaration]), how it is called ([Call],
// [Result]), where tools come from ([Tool], [Toolset], [Registry]) and how a call fails ([Error]).
//
// Kinds of tools are packages below it. A tool knows its call and its idempotency key; it must not know Temporal, the
// store or HTTP routes. Activities call tools through this package only.
package tools
