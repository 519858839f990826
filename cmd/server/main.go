// Command server is Tarry's HTTP side: the API, the connect pages, the OAuth callback and the outbox. It keeps no state:
// any number may run beside each other.
package main

import (
	"os"

	"tarry/internal/process"
)

func main() {
	os.Exit(process.Program{Name: "server", Usage: usage, Run: serve, Addr: address}.Main())
}
