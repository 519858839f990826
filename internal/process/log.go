package process

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// Logger makes the process's logger: JSON lines, or text where format is "text". Level is one of debug, info, warn, error.
func Logger(w io.Writer, format, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("TARRY_LOG_LEVEL: %q is not one of debug, info, warn, error", level)
	}
	options := &slog.HandlerOptions{Level: l}
	if strings.EqualFold(format, "text") {
		return slog.New(slog.NewTextHandler(w, options)), nil
	}
	return slog.New(slog.NewJSONHandler(w, options)), nil
}
