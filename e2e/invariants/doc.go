// Package invariants checks what a run has left behind against what always holds: that every call in a model's view has its
// one response (I9 of docs/architecture.md), that nothing that was recorded was produced again (I6), and that nothing went
// on that depended on an answer of a person (I8). Where everything rests, [CheckState] checks rows against each other: what was
// decided is told and done (I4), nobody is asked for what is there (I5), nothing is another person's (I7), and nothing was granted
// that nobody gave (I10).
//
// It reads tables and the journal of scripted models and nothing else. It must use none of the code that it checks: neither
// the order of a view nor the shape of a conversation is taken over from elsewhere. The end-to-end tests run it on every
// world that they make.
package invariants
