//go:build interop && race

package interop_test

// raceDetector: the programs under test are built like the tests.
const raceDetector = true
