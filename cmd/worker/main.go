// Command worker runs Tarry's workflows and activities. It keeps no state: any number may run beside each other.
package main

import (
	"os"

	"tarry/internal/process"
)

func main() {
	os.Exit(process.Program{Name: "worker", Usage: usage, Run: work, Addr: address}.Main())
}
