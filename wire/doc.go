// Package wire is what crosses Temporal: names of workflows, activities, signals and queries, their payloads, and the
// ids that are derived on both sides.
//
// It owns every name and every JSON field that stands in a workflow history. Such a name is permanent: the Go function
// behind it may be renamed, the wire name may not, and payload structs only ever gain fields, because runs started years
// ago are replayed with today's types. It holds ids, names and counts, never content and never a secret. Workflows,
// activities, engine, outbox and server use it; it imports package agent only.
package wire
