// Package server is the HTTP side of Tarry, wired: ADK's API, Tarry's own, the connect pages with the OAuth callback, and
// the outbox that tells runs what happened.
//
// It is a process apart from the worker, because a callback must land while every worker is down or being deployed; any
// number may run beside each other. It owns wiring: which handler stands behind which sign-in, which errors of the login
// machinery become which page. It runs no workflow, model or tool; package engine reaches those through Temporal.
package server
