package embedded

import (
	"errors"
	"fmt"
	"net"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/headers"
	"go.temporal.io/server/common/searchattribute/sadefs"
	"go.temporal.io/server/schema/sqlite"
)

// Options says what server to run. IP, Namespace and Retention are required.
type Options struct {
	// File holds all state. Empty: memory, gone when the process ends.
	File string
	// IP to listen on; a loopback address ("localhost" is 127.0.0.1).
	IP string
	// Port of the frontend. 0: a free one.
	Port int
	// InternalPort is the first of the three ports of the other services. 0: free ones.
	InternalPort int
	// Namespace is created, or brought up to date, before the server starts.
	Namespace string
	// Retention is how long the history of a closed workflow is kept.
	Retention time.Duration
	// SearchAttributes maps names to types ("Keyword"). Those the namespace lacks are added, none is removed.
	SearchAttributes map[string]string
	// DynamicConfig overrides Temporal's dynamic configuration and the values set by this package.
	DynamicConfig map[string]any
	// Claimed, if set, is called at start when file and ports are this process's own, before anything is changed.
	Claimed func() error
}

// Version names this program and the server in it.
func Version() string {
	return fmt.Sprintf("tarry devserver, Temporal server %s, SQLite schema %s/%s",
		headers.ServerVersion, sqlite.Version, sqlite.VisibilityVersion)
}

// Validate reports everything that is wrong with the options.
func (o *Options) Validate() error {
	var problems []error
	if o.IP == "localhost" {
		o.IP = "127.0.0.1"
	}
	if ip := net.ParseIP(o.IP); ip == nil || !ip.IsLoopback() {
		problems = append(problems, fmt.Errorf("--ip %q is not a loopback address: this server has no access control", o.IP))
	}
	if o.Port < 0 || o.Port > 65535 {
		problems = append(problems, fmt.Errorf("--port %d is not between 0 and 65535", o.Port))
	}
	if o.InternalPort < 0 || o.InternalPort > 65535-len(internalServices()) {
		problems = append(problems, fmt.Errorf("--internal-port %d leaves no room for %d ports", o.InternalPort,
			len(internalServices())))
	}
	if o.Namespace == "" {
		problems = append(problems, errors.New("--namespace is empty"))
	}
	if _, err := attributeTypes(o.SearchAttributes); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

func attributeTypes(names map[string]string) (map[string]enumspb.IndexedValueType, error) {
	types := make(map[string]enumspb.IndexedValueType, len(names))
	for name, text := range names {
		typ, err := enumspb.IndexedValueTypeFromString(text)
		if err != nil || typ == enumspb.INDEXED_VALUE_TYPE_UNSPECIFIED {
			return nil, fmt.Errorf("search attribute %s has unknown type %q", name, text)
		}
		if sadefs.IsReserved(name) {
			return nil, fmt.Errorf("search attribute %s is reserved by Temporal", name)
		}
		types[name] = typ
	}
	return types, nil
}
