// Package matrix is the app that tests run over: one agent for each kind of agent and each kind of wait, with the tools that
// wait and a model that calls them.
//
// It exists so that the tests against real processes and those within one compare the same runs. It must know nothing of how it
// is run, and is for tests alone.
package matrix
