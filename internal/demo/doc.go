// Package demo is the other side of a login: what `starter demo` and the tests run Tarry against.
//
// It owns a small authorization server with real pages ([Provider]), an MCP server that asks for its tokens
// ([MCPServer]), and a browser without a screen ([Browser]) that goes through the pages as a person would. The provider
// is strict where the specifications are: exact redirect URIs, S256, one resource from authorize to refresh, codes and
// refresh tokens that work once. It misbehaves only where [Faults] says so.
//
// Every secret that it issues carries a mark, and it keeps a list of them, so that a test can look for them where no
// secret may be.
//
// Its own listeners are on loopback only; who mounts its handlers elsewhere, as `starter demo-services` may, says where it is
// reached. It keeps everything in memory and knows nothing of Tarry: only the demo commands and tests call it.
package demo
