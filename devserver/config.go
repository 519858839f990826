package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"tarry/devserver/internal/embedded"
)

const day = 24 * time.Hour

// config is what the command line says.
type config struct {
	server    embedded.Options
	logLevel  slog.Level
	readyFile string
	version   bool
}

// parse reads the command line. It returns flag.ErrHelp after printing the usage to usage.
func parse(args []string, usage io.Writer) (config, error) {
	cfg := config{
		logLevel: slog.LevelWarn,
		server: embedded.Options{
			SearchAttributes: map[string]string{},
			DynamicConfig:    map[string]any{},
		},
	}
	var (
		retention int
		bare      bool
		flags     = flag.NewFlagSet("devserver", flag.ContinueOnError)
	)
	flags.SetOutput(io.Discard)
	flags.StringVar(&cfg.server.File, "db", "", "`file` that holds all state, made if it does not exist; empty: memory")
	flags.StringVar(&cfg.server.IP, "ip", "127.0.0.1", "loopback `address` to listen on")
	flags.IntVar(&cfg.server.Port, "port", 7233, "`port` of the frontend; 0: a free one")
	flags.IntVar(&cfg.server.InternalPort, "internal-port", 0,
		"first of three `port`s in a row for history, matching and worker; 0: free ones")
	flags.StringVar(&cfg.server.Namespace, "namespace", "default", "`name` of the namespace that is set up")
	flags.IntVar(&retention, "retention", 3650, "`days` that closed workflows are kept (at most 36500)")
	flags.BoolVar(&bare, "bare", false, "leave Tarry's own search attributes out")
	flags.Func("search-attribute", "`name=Type` to add to the namespace (repeatable): Bool, Datetime, Double, Int, Keyword, "+
		"KeywordList or Text", cfg.addSearchAttribute)
	flags.Func("dynamic-config-value", "`key=JSON` of Temporal's dynamic configuration (repeatable)", cfg.addDynamicValue)
	flags.TextVar(&cfg.logLevel, "log-level", slog.LevelWarn, "least `level` that is logged: debug, info, warn, error")
	flags.StringVar(&cfg.readyFile, "ready-file", "", "`file` that holds the frontend's address while the server is ready")
	flags.BoolVar(&cfg.version, "version", false, "print the version and exit")

	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(usage)
			flags.Usage()
		}
		return config{}, fmt.Errorf("arguments: %w", err)
	}
	if flags.NArg() > 0 {
		return config{}, fmt.Errorf("arguments: %q is not a flag", flags.Arg(0))
	}
	if !bare {
		for _, name := range []string{"TarryApp", "TarryAgent", "TarryStatus"} {
			cfg.server.SearchAttributes[name] = "Keyword"
		}
	}
	if retention < 1 || retention > 36500 {
		return config{}, fmt.Errorf("--retention %d is not between 1 and 36500 days", retention)
	}
	cfg.server.Retention = time.Duration(retention) * day
	if err := cfg.server.Validate(); err != nil {
		return config{}, fmt.Errorf("arguments: %w", err)
	}
	return cfg, nil
}

func (c *config) addSearchAttribute(arg string) error {
	name, typ, ok := strings.Cut(arg, "=")
	if !ok || name == "" || typ == "" {
		return errors.New("want name=Type")
	}
	c.server.SearchAttributes[name] = typ
	return nil
}

func (c *config) addDynamicValue(arg string) error {
	key, text, ok := strings.Cut(arg, "=")
	if !ok || key == "" {
		return errors.New("want key=JSON")
	}
	decoder := json.NewDecoder(bytes.NewBufferString(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return fmt.Errorf("value is not JSON (a string needs quotes): %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("value is more than one JSON value")
	}
	c.server.DynamicConfig[key] = numbers(value)
	return nil
}

// numbers turns JSON numbers into int where they are whole: Temporal ignores a float for an integer setting.
func numbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return int(whole)
		}
		float, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return float
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = numbers(v[key])
		}
	}
	return value
}
