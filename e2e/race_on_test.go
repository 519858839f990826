//go:build race

package e2e_test

// raceDetector: the programs under test are built like the tests.
const raceDetector = true
