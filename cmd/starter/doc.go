// Command starter is the command line: it starts runs and shows what they do, over the server's HTTP API; it starts a
// server for development; and it plays the demo.
//
// It keeps no state and decides nothing: a run goes on whether or not a starter looks on. Standard output has answers and
// what was asked for, for programs with --json; progress, hints and errors go to standard error.
package main
