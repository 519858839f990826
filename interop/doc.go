// Package interop runs the real thing against parts that nobody here wrote: oidc-provider as authorization server and the
// reference MCP server "everything", both from npm, pinned by the lock file. `make interop` runs it; its tests have the
// build tag interop, since they need Node.js.
package interop
