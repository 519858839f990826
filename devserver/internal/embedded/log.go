package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// logger is the server's logger on top of a slog handler.
type logger struct {
	handler slog.Handler
}

var _ log.WithLogger = logger{}

// SLog lets the server use the same handler where it logs through slog.
func (l logger) SLog() *slog.Logger { return slog.New(l.handler) }

// With implements log.WithLogger.
func (l logger) With(tags ...tag.Tag) log.Logger {
	return logger{handler: l.handler.WithAttrs(attrs(tags))}
}

func (l logger) Debug(msg string, tags ...tag.Tag) { l.log(slog.LevelDebug, msg, tags) }

func (l logger) Info(msg string, tags ...tag.Tag) { l.log(slog.LevelInfo, msg, tags) }

func (l logger) Warn(msg string, tags ...tag.Tag) { l.log(slog.LevelWarn, msg, tags) }

func (l logger) Error(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }

func (l logger) DPanic(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }

// Panic and Fatal end the process, as the server's code expects of them.

func (l logger) Panic(msg string, tags ...tag.Tag) {
	l.log(slog.LevelError, msg, tags)
	panic(msg)
}

func (l logger) Fatal(msg string, tags ...tag.Tag) {
	l.log(slog.LevelError, msg, tags)
	os.Exit(1)
}

func (l logger) log(level slog.Level, msg string, tags []tag.Tag) {
	ctx := context.Background()
	if !l.handler.Enabled(ctx, level) {
		return
	}
	found := attrs(tags)
	if slices.ContainsFunc(found, notYet) {
		if level = slog.LevelDebug; !l.handler.Enabled(ctx, level) {
			return
		}
	}
	record := slog.NewRecord(time.Now(), level, msg, 0)
	record.AddAttrs(found...)
	_ = l.handler.Handle(ctx, record)
}

// notYet finds what the frontend says to the services beside it in the moment before it is healthy. They try again, so it
// is no fault of a start.
func notYet(a slog.Attr) bool {
	return strings.Contains(a.Value.String(), "Frontend is not healthy yet")
}

// quietHandler drops what is less than an error once the server is stopping: services that stop one after the other
// complain that the others are gone.
type quietHandler struct {
	slog.Handler
	stopping *atomic.Bool
}

// Enabled implements slog.Handler.
func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	if h.stopping.Load() && level < slog.LevelError {
		return false
	}
	return h.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{Handler: h.Handler.WithAttrs(attrs), stopping: h.stopping}
}

// WithGroup implements slog.Handler.
func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{Handler: h.Handler.WithGroup(name), stopping: h.stopping}
}

func attrs(tags []tag.Tag) []slog.Attr {
	out := make([]slog.Attr, 0, len(tags))
	for _, t := range tags {
		value := t.Value()
		if stringer, ok := value.(fmt.Stringer); ok {
			value = stringer.String()
		}
		out = append(out, slog.Any(t.Key(), value))
	}
	return out
}
