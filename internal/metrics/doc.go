// Package metrics shows what Temporal's SDK counts, and what a process counts about itself, in Prometheus' text format.
//
// It owns the translation and nothing else: no metric is decided here. Labels hold names and codes, never ids, users or
// content; the types of tool activities are folded to "tool", since their number has no bound. Only cmd uses it.
package metrics
