//go:build pages

package pages_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// patience is longer than anything takes on a machine that is busy.
const patience = time.Minute

// chromium is a running browser; tab opens profiles of their own in it.
type chromium struct {
	ctx context.Context
	// shots is the folder of screenshots.
	shots string
}

// start starts Chromium, which ends with the test. Without one the test is skipped, but not in CI.
func start(t *testing.T) *chromium {
	t.Helper()
	path, found := demo.Chromium(os.Getenv("TARRY_CHROMIUM"))
	if !found {
		require.NotEqual(t, "true", os.Getenv("CI"), "there is no Chromium: install the package chromium, or name one in TARRY_CHROMIUM")
		t.Skip("there is no Chromium: install the package chromium, or name one in TARRY_CHROMIUM")
	}
	shots, err := filepath.Abs("../bin/pages")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(shots, 0o750))
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(patience),
		// Its sandbox needs what containers and root do not have; it opens pages of these tests alone.
		chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true),
	)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx), "start Chromium")
	return &chromium{ctx: ctx, shots: shots}
}

// tab is a window with cookies of its own.
type tab struct {
	t     *testing.T
	ctx   context.Context
	shots string

	mu       sync.Mutex
	problems []string
}

func (c *chromium) tab(t *testing.T) *tab {
	t.Helper()
	b := &tab{t: t, shots: c.shots}
	ctx, cancel := chromedp.NewContext(c.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.listen))
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx), "open a tab")
	b.ctx, cancel = context.WithTimeout(ctx, 2*patience)
	t.Cleanup(cancel)
	command(b, log.Enable, cdp.Empty{})
	command(b, network.Enable, network.EnableParams{})
	return b
}

func command[P, R any](b *tab, c cdp.Command[P, R], params P) R {
	b.t.Helper()
	result, err := chromedp.Call(b.ctx, c, params)
	require.NoError(b.t, err)
	return result
}

// listen keeps what the browser complains about; that an answer has an error's status is none.
func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Source != log.EntrySourceNetwork && (e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning) {
			b.problems = append(b.problems, fmt.Sprintf("%s: %s: %s", e.Entry.Source, e.Entry.Level, e.Entry.Text))
		}
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, e.ExceptionDetails.Text)
	case *network.EventLoadingFailed:
		if e.BlockedReason != "" {
			b.problems = append(b.problems, "blocked: "+string(e.BlockedReason))
		}
	}
}

func (b *tab) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.problems
	b.problems = nil
	return out
}

func (b *tab) open(address string) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.Navigate(address)))
}

// eval runs script in the page.
func eval[T any](b *tab, script string) T {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script))
	require.NoError(b.t, err)
	return out
}

// media says what the person prefers: prefers-color-scheme and the like.
func (b *tab) media(features ...*emulation.MediaFeature) {
	b.t.Helper()
	command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
}

func (b *tab) size(width, height int64) {
	b.t.Helper()
	command(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
}

// shot keeps a screenshot of the whole page.
func (b *tab) shot(name string) {
	b.t.Helper()
	image, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(b.shots, name+".png"), image, 0o600))
}
