// Package embedded runs a Temporal server in this process: its configuration, the namespace it serves, and the proof
// that it works before anyone is told so. Package main calls it; it must not read flags or the environment.
//
// What is set here, and why, was found by measuring:
//
//   - The services find each other by fixed addresses. The membership ring, which the server's own test helper joins on
//     random ports, waits 50 s after a SIGKILL for members that are gone.
//   - SQLite keeps a write-ahead log (journal_mode=WAL) and syncs it at every commit (synchronous=FULL): what the server
//     has acknowledged survives a SIGKILL and a power cut. (On macOS a power cut can still take the last commits, since
//     fsync there does not empty the drive's cache.)
//   - The queues of the history service are polled as often as there is work; the default of 20 a second costs 50 ms for
//     each step of a workflow. Timers are not held back for the sake of clocks on other hosts, which costs them a second.
//   - A task queue has one partition instead of four, which share out the load of many hosts. With four, one workflow in
//     a hundred took two seconds to start.
//   - The namespace is written before the server starts, so that no cache has to notice the change.
package embedded
