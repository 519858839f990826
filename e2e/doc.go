// Package e2e runs the real thing: dev server, worker and server as processes, an identity provider and an MCP server
// that check what they are sent, and kill -9 at the worst moments. It holds tests only.
package e2e
