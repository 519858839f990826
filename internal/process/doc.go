// Package process is what the binaries' main functions share: reading the environment into a logger and a Temporal
// client, holding a process at a fault point in test builds, and ending on a signal. Only cmd calls it.
package process
