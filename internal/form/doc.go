// Package form makes forms of the JSON Schemas that MCP servers ask people with (elicitation, form mode): a flat object of
// strings, numbers, booleans and choices.
//
// It owns what such a schema may be ([Fields]), what its defaults fill in ([Defaults]) and the check of what a person filled in
// ([Read]). It must not follow a $ref, render HTML or know who asks. Package tools/mcp judges servers' forms with it, the
// server shows and reads them.
package form
