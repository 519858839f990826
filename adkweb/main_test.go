//go:build adkweb

package adkweb_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
)

// played counts the steps of all scenarios.
var played counts

// only is for whoever works at a scenario.
var only = flag.String("only", "", "play the scenarios with this in their names")

// TestMain says last how many steps passed, and fails unless all did.
func TestMain(m *testing.M) {
	status := m.Run()
	fmt.Printf("adkweb: %d of %d steps passed\n", played.passed, played.all)
	if played.all == 0 || played.passed != played.all {
		status = 1
	}
	os.Exit(status)
}

func TestUI(t *testing.T) {
	browser := start(t)
	open := newWorld(t)
	stories := []story{{open, slices.Concat(logins(), tabs(), asks())}}
	closed, scenarios := signedIn(t)
	stories = append(stories, story{closed, scenarios})
	played = run(t, browser, stories)
}
