//go:build adkweb

package adkweb_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// scenario is a story of steps, each of which needs those before it.
type scenario struct {
	name  string
	steps []step
}

type step struct {
	name string
	do   func(*play)
}

// play is a scenario on its way.
type play struct {
	*world
	*chromium
	scenario scenario
	t        *testing.T
	// number and name are those of the step.
	number int
	name   string
	tabs   []*tab
	ends   []func()
	// user and app are those of the scenario.
	user, app string
	main      *tab // the person's window
	popup     *tab // the one that the UI opened, if there is one
	// quiet is why the console is not looked at after this step.
	quiet string
}

// counts are steps: all of them, and those that passed.
type counts struct{ all, passed int }

// story are scenarios at one server.
type story struct {
	world     *world
	scenarios []scenario
}

// run plays scenarios. What follows a failed step in its scenario is not tried.
func run(t *testing.T, browser *chromium, stories []story) (n counts) {
	t.Helper()
	var plays []*play
	for _, at := range stories {
		for _, s := range at.scenarios {
			if !strings.Contains(s.name, *only) {
				continue
			}
			n.all += len(s.steps)
			plays = append(plays, &play{world: at.world, chromium: browser, scenario: s})
		}
	}
	number := 0
	for _, p := range plays {
		s := p.scenario
		ok := true
		for _, step := range s.steps {
			number++
			p.number, p.name = number, s.name+": "+step.name
			if !ok {
				say("not reached %2d  %s", number, p.name)
				continue
			}
			began := time.Now()
			if ok = t.Run(fmt.Sprintf("%02d", number), func(t *testing.T) { p.try(t, step) }); ok {
				n.passed++
				say("ok %2d of %d  %s  (%.1f s)", number, n.all, p.name, time.Since(began).Seconds())
			} else {
				say("FAILED %2d of %d  %s", number, n.all, p.name)
			}
		}
		p.wrote()
		for _, end := range slices.Backward(p.ends) {
			end()
		}
	}
	return n
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// try does a step and keeps what the windows show; a step fails as well if the console has errors that come from our answers.
func (p *play) try(t *testing.T, s step) {
	t.Helper()
	p.t, p.quiet = t, ""
	defer p.look()
	s.do(p)
	for _, b := range p.tabs {
		if complaints := b.complaints(); p.quiet == "" {
			require.Empty(t, complaints, "errors in the console")
		}
	}
}

// after is done when the scenario is over.
func (p *play) after(f func()) { p.ends = append(p.ends, f) }

var unsafe = regexp.MustCompile(`[^a-z0-9]+`)

// slug makes a part of a file's name.
func slug(text string) string {
	return strings.Trim(unsafe.ReplaceAllString(strings.ToLower(text), "-"), "-")
}

// look keeps a screenshot of every window, and of a failed step the page and its console too.
func (p *play) look() {
	for i, b := range p.tabs {
		which := ""
		if i > 0 {
			which = fmt.Sprintf("-window-%d", i+1)
		}
		b.keep(p.file() + which)
	}
}

// file is the beginning of the names of a step's files.
func (p *play) file() string {
	return filepath.Join(p.shots, fmt.Sprintf("%02d-%s", p.number, slug(p.name)))
}

// wrote keeps what the person's window sent to the API.
func (p *play) wrote() {
	if p.main == nil {
		return
	}
	p.main.mu.Lock()
	defer p.main.mu.Unlock()
	_ = os.WriteFile(filepath.Join(p.shots, "requests-"+slug(p.scenario.name)+".txt"), []byte(strings.Join(p.main.requests, "\n")+"\n"), 0o600)
}

func (b *tab) keep(file string) {
	ctx, cancel := within(b.ctx)
	defer cancel()
	if image, err := chromedp.Run(ctx, chromedp.CaptureScreenshot()); err == nil {
		_ = os.WriteFile(file+".png", image, 0o600)
	}
	if !b.t.Failed() {
		return
	}
	page, _ := eval[string](b, "document.documentElement.outerHTML")
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = os.WriteFile(file+".html", []byte(page), 0o600)
	_ = os.WriteFile(file+".console.txt", []byte(strings.Join(append(append([]string{}, b.all...), b.requests...), "\n")+"\n"), 0o600)
}
