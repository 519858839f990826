package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/stack"
)

// audience is a number of clients that read at once, of whom some go away and come back, and some read slowly.
type audience struct {
	w       *world
	client  *http.Client
	readers []*streamer
	// late are the times from an event's commit to its arrival, at clients that read as fast as they can.
	late []time.Duration
}

// habit is how a client reads.
type habit int

const (
	steady habit = iota
	cutOff       // after each second frame
	slow         // a moment after each frame
	many
)

// gather begins n sessions and reads them all, to their ends.
func (w *world) gather(ctx context.Context, n int) *audience {
	w.t.Helper()
	routes := []route{posted("run_sse", false, byHeader), posted("run_sse, pieces", true, byHeader), followed("events", byHeader)}
	c := &audience{w: w, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}}
	for i := range n {
		s := w.streamer(routes[i%len(routes)], "")
		s.client = c.client
		c.readers = append(c.readers, s)
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	for i, s := range c.readers {
		group.Go(func() {
			s.session = w.begin(s.route)
			how := habit(i / len(routes) % int(many))
			if how == slow {
				s.after = func(int) { time.Sleep(100 * time.Millisecond) }
			}
			var err error
			for over := false; how == cutOff && !over && err == nil; {
				over, err = s.read(ctx, w.URL(), len(s.frames)+2, false)
			}
			if err == nil && how != cutOff {
				err = s.whole(ctx, w.URL())
			}
			mu.Lock()
			defer mu.Unlock()
			if how == steady {
				c.late = append(c.late, s.delays()...)
			}
			if err != nil {
				w.t.Errorf("client %d: %v", i, err)
			}
		})
	}
	group.Wait()
	return c
}

// delays are those of whole events.
func (s *streamer) delays() (out []time.Duration) {
	for _, f := range s.frames {
		var e struct {
			Timestamp float64
			Partial   bool
		}
		if json.Unmarshal([]byte(f.data), &e) == nil && e.Timestamp > 0 && !e.Partial {
			out = append(out, f.at.Sub(time.UnixMicro(int64(e.Timestamp*1e6))))
		}
	}
	return out
}

// 200 clients read at once, each its own session; of them a third goes away after every second event and comes back, and a third
// reads slowly. None loses anything, and none is told anything twice.
func TestTwoHundredStreams(t *testing.T) {
	t.Parallel()
	n := number(t, "TARRY_STREAMS", 200)
	w := newWorld(t, notes(t, "10ms", "1ms"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := w.gather(ctx, n)
	require.Len(t, c.readers, n)
	for i, s := range c.readers {
		s.matches(t, w, fmt.Sprint("client ", i))
	}
	require.Len(t, w.modelCalls(), 3*n)
}

// BenchmarkStreams measures what clients that read along cost a server: n of them on sessions where nothing happens, on one session
// of a long conversation, and while all of their sessions run.
func BenchmarkStreams(b *testing.B) {
	const n = 200
	w := newWorld(b, notes(b, "10ms", "1ms"))
	for b.Loop() {
		ctx, cancel := context.WithTimeout(b.Context(), patience)
		empty := w.memory()
		sessions := make([]string, n)
		for i := range sessions {
			sessions[i] = w.begin(posted("", false, nil))
		}
		idle := w.watched(ctx, sessions, 10*time.Second)
		b.ReportMetric(idle.cpu, "idle-cpu-%")
		b.ReportMetric(float64(idle.memory-empty)/n/1024, "idle-KB/client")

		began, before := time.Now(), w.cpu()
		c := w.gather(ctx, n)
		b.ReportMetric(float64(w.cpu()-before)/float64(time.Since(began))*100, "busy-cpu-%")
		b.ReportMetric(time.Since(began).Seconds(), "busy-s")
		slices.Sort(c.late)
		require.NotEmpty(b, c.late)
		b.ReportMetric(float64(c.late[len(c.late)/2].Milliseconds()), "p50-ms")
		b.ReportMetric(float64(c.late[len(c.late)*99/100].Milliseconds()), "p99-ms")

		// A long conversation with a picture, which many look at.
		long := w.begin(posted("", false, nil))
		for range 10 {
			s := w.streamer(posted("", false, byHeader), long)
			status, _ := w.api.sse(message(s.session, map[string]any{"text": "Go. " + strings.Repeat("x", 100<<10)}), false)
			require.Equal(b, http.StatusOK, status)
		}
		same := w.watched(ctx, slices.Repeat([]string{long}, 50), 10*time.Second)
		b.ReportMetric(same.cpu, "same-cpu-%")
		cancel()
	}
}

type spent struct {
	cpu    float64 // per cent of one processor
	memory int64   // bytes
}

// watched reads sessions along for a while in which nothing happens.
func (w *world) watched(ctx context.Context, sessions []string, while time.Duration) (out spent) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{}}
	var open, group sync.WaitGroup
	for _, id := range sessions {
		open.Add(1)
		group.Go(func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL()+"/apps/assistant/users/user/sessions/"+id+"/events?follow=true", http.NoBody)
			if err == nil {
				var resp *http.Response
				if resp, err = client.Do(req); err == nil {
					defer resp.Body.Close()
				}
			}
			open.Done()
			if err != nil {
				w.t.Error(err)
			}
			<-ctx.Done()
		})
	}
	open.Wait()
	time.Sleep(2 * time.Second)
	began, before := time.Now(), w.cpu()
	time.Sleep(while)
	out.cpu = float64(w.cpu()-before) / float64(time.Since(began)) * 100
	out.memory = w.memory()
	cancel()
	group.Wait()
	return out
}

// cpu is what the server has used of processors; 0 where there is no /proc.
func (w *world) cpu() time.Duration {
	body, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.Pid(stack.Server)))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(body[strings.LastIndex(string(body), ")")+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	const tick = 10 * time.Millisecond
	return time.Duration(user+system) * tick
}

// memory is what the server has in memory, in bytes; 0 where there is no /proc.
func (w *world) memory() int64 {
	body, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", w.Pid(stack.Server)))
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(body))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
