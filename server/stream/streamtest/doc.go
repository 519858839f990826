// Package streamtest plays the workflow's part in tests of the HTTP side: it takes messages out of a real store and
// appends what a run would, step by step, so that a test decides when what happens.
//
// Only tests import it.
package streamtest
