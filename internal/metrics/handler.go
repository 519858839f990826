package metrics

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.temporal.io/sdk/client"

	"tarry/wire"
)

// Handler is a client.MetricsHandler that keeps everything for [Handler.HTTP]. Safe for concurrent use.
type Handler struct {
	all  *instruments
	tags prometheus.Labels
}

var _ client.MetricsHandler = (*Handler)(nil)

// New makes an empty handler.
func New() *Handler {
	return &Handler{all: &instruments{byKey: map[string]prometheus.Metric{}}}
}

// HTTP serves the metrics, with those of the Go runtime and the process.
func (h *Handler) HTTP() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(h.all, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// WithTags implements client.MetricsHandler.
func (h *Handler) WithTags(tags map[string]string) client.MetricsHandler {
	labels := prometheus.Labels{}
	for _, from := range []map[string]string{h.tags, tags} {
		for name, value := range from {
			if name == "activity_type" && wire.IsToolActivity(value) {
				value = "tool"
			}
			labels[clean(name)] = value
		}
	}
	return &Handler{all: h.all, tags: labels}
}

// Counter implements client.MetricsHandler.
func (h *Handler) Counter(name string) client.MetricsCounter {
	c := instrument(h, name, func(name string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: h.tags})
	})
	return counter{c}
}

// Gauge implements client.MetricsHandler.
func (h *Handler) Gauge(name string) client.MetricsGauge {
	g := instrument(h, name, func(name string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: h.tags})
	})
	return gauge{g}
}

// Timer implements client.MetricsHandler; durations are in seconds.
func (h *Handler) Timer(name string) client.MetricsTimer {
	t := instrument(h, name+"_seconds", func(name string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, ConstLabels: h.tags, Buckets: prometheus.ExponentialBuckets(0.001, 4, 10)})
	})
	return timer{t}
}

const help = "Counted by the Temporal SDK."

type counter struct{ prometheus.Counter }

func (c counter) Inc(n int64) { c.Add(float64(max(n, 0))) }

type gauge struct{ prometheus.Gauge }

func (g gauge) Update(v float64) { g.Set(v) }

type timer struct{ prometheus.Histogram }

func (t timer) Record(d time.Duration) { t.Observe(d.Seconds()) }

// instruments collects what was asked for. It describes nothing in advance: which tags the SDK gives to a metric differs
// from place to place.
type instruments struct {
	mu    sync.Mutex
	byKey map[string]prometheus.Metric
}

// Describe implements prometheus.Collector.
func (*instruments) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (i *instruments) Collect(out chan<- prometheus.Metric) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, m := range i.byKey {
		out <- m
	}
}

func instrument[M prometheus.Metric](h *Handler, name string, create func(string) M) M {
	name = clean(name)
	parts := make([]string, 0, len(h.tags))
	for label, value := range h.tags {
		parts = append(parts, label+"\x00"+value)
	}
	slices.Sort(parts)
	key := name + "\x00" + strings.Join(parts, "\x00")
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	if m, ok := h.all.byKey[key].(M); ok {
		return m
	}
	m := create(name)
	h.all.byKey[key] = m
	return m
}

// clean makes a name that Prometheus takes.
func clean(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, name)
}
