// Package function makes a tool of a Go function: its JSON schemas come from the function's types, arguments are checked
// against them, and errors become what a model can act on.
//
// It owns the way between JSON and Go values. It must not know credentials: a function takes its tokens from
// [tarry/auth.Token] and declares them with [Credential]. Workers make tools with it when they start; activities call them.
package function
