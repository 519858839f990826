// Package openapitest holds what handlers take and answer against the OpenAPI document: [Check] around a handler under test,
// [Transport] in a client of a server that runs. A status, a header, a content type or a value that the document does not have
// fails the test, by route, status and place in the JSON.
//
// Answers are read strictly: a field that is not described does not fit, and a field that is described as written only
// (a secret) must not be there. Requests are read as clients see the document: fields may be more than it has. Only those that
// succeeded are checked.
package openapitest
