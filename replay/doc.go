// Package replay runs recorded histories against today's workflow code and says where they differ.
//
// A [Replayer] checks a history, a file, a folder, or the sessions that are open in a namespace. Beyond what the SDK's
// replayer checks (kinds and order of commands) it compares the inputs of activities, the durations of timers and the whole
// names of activities, and it wants to know everything in a session's start input. A [DifferenceError] names the first
// difference in words. Histories hold no inputs of local activities: of those, kind and order are checked. What a run hands
// to the next is not compared: it may gain fields, and the next run's start input is what counts.
//
// [Redact] makes histories fit to be kept. It needs neither a store nor a server: a history holds ids and names, and what
// custom agents have read. It must not touch a store. The command line, the project's own fixtures and users' tests call it.
package replay
