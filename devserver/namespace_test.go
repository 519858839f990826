package main_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tarry/devserver/internal/datafile"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
)

// namespace is what a server says of its namespace.
type namespace struct {
	retention  time.Duration
	attributes map[string]enumspb.IndexedValueType
}

func describe(t *testing.T, addr, name string) namespace {
	t.Helper()
	c := dial(t, addr)
	described, err := c.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: name})
	require.NoError(t, err)
	listed, err := c.OperatorService().ListSearchAttributes(t.Context(), &operatorservice.ListSearchAttributesRequest{Namespace: name})
	require.NoError(t, err)
	return namespace{
		retention:  described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(),
		attributes: listed.GetCustomAttributes(),
	}
}

func TestNamespaceIsSetUpAtEachStart(t *testing.T) {
	t.Parallel()
	const (
		day     = 24 * time.Hour
		keyword = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	)
	file := filepath.Join(t.TempDir(), "state.db")
	run := func(args ...string) (*process, string) {
		return start(t, append([]string{"--port", "0", "--db", file}, args...)...)
	}
	tarry := map[string]enumspb.IndexedValueType{"TarryApp": keyword, "TarryAgent": keyword, "TarryStatus": keyword}

	p, addr := run("--bare")
	got := describe(t, addr, "default")
	require.Equal(t, 3650*day, got.retention)
	require.Empty(t, got.attributes)
	require.Equal(t, 0, p.stop())

	p, addr = run("--retention", "7")
	got = describe(t, addr, "default")
	require.Equal(t, 7*day, got.retention)
	require.Equal(t, tarry, got.attributes)

	// What someone changed is set again.
	_, err := dial(t, addr).WorkflowService().UpdateNamespace(t.Context(), &workflowservice.UpdateNamespaceRequest{
		Namespace: "default",
		Config:    &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(day)},
	})
	require.NoError(t, err)
	p.kill()

	p, addr = run("--search-attribute", "Amount=Int", "--search-attribute", "Tags=KeywordList")
	got = describe(t, addr, "default")
	require.Equal(t, 3650*day, got.retention)
	tarry["Amount"], tarry["Tags"] = enumspb.INDEXED_VALUE_TYPE_INT, enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST
	require.Equal(t, tarry, got.attributes)
	p.kill()

	p, addr = run("--namespace", "other", "--bare")
	require.Empty(t, describe(t, addr, "other").attributes)
	require.Equal(t, tarry, describe(t, addr, "default").attributes)
	p.kill()

	require.Contains(t, refused(t, 1, "--port", "0", "--db", file, "--search-attribute", "Amount=Text"),
		"search attribute Amount has type Int in this file, not Text")
	require.Contains(t, refused(t, 1, "--port", "0", "--db", file, "--search-attribute", "I1=Int",
		"--search-attribute", "I2=Int", "--search-attribute", "I3=Int"), "no further column of type Int")
}

func TestFileOfAnotherVersion(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state.db")
	require.NoError(t, datafile.Prepare(t.Context(), file, "1.2.3", func(func(string) error) error { return nil }))
	line := refused(t, 1, "--port", "0", "--db", file)
	require.Contains(t, line, file+" belongs to Temporal server 1.2.3")
	require.Contains(t, line, "--db")
}

func TestDynamicConfigValue(t *testing.T) {
	t.Parallel()
	_, addr := start(t, "--port", "0", "--dynamic-config-value", "limit.maxIDLength=200")
	c := dial(t, addr)
	options := client.StartWorkflowOptions{ID: "short", TaskQueue: queue}
	_, err := c.ExecuteWorkflow(t.Context(), options, "ledger")
	require.NoError(t, err)
	options.ID = strings.Repeat("long", 51)
	_, err = c.ExecuteWorkflow(t.Context(), options, "ledger")
	require.ErrorContains(t, err, "length exceeds limit")
}
