// Package runs is Tarry's own API about runs: start one, see where it stands and what it waits for, follow or read its
// events, cancel it, take its Temporal history, and list the logins that people are asked for. The command line uses it.
//
// It owns the shape of these answers. It reads the store, which needs no worker; cancelling and histories go through
// small interfaces, since it must not know Temporal. Nothing here holds or shows a credential. Package server wires it.
package runs
