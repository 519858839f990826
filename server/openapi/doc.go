// Package openapi is the OpenAPI description of the whole HTTP API, and the route that serves it.
//
// The document is written by hand, as YAML, in files by area under api/: what a route means, which errors it has and what of it
// is a secret stands in no Go type. It owns the text and puts the files together; it knows no handler. Three checks keep it
// true: this package's tests compare its paths with the patterns that handlers mount and its bounds with their constants, and
// the tests of the handlers hold every answer against it (package openapitest).
package openapi
