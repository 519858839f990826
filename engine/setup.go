package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"tarry/wire"
)

// attributes remembers whether the namespace has our search attributes; a namespace that lacks them is asked again, since
// an operator may add them while we run.
type attributes struct {
	mu    sync.Mutex
	known bool
	asked time.Time
	has   bool
}

const askAgain = time.Minute

func ours() map[string]enums.IndexedValueType {
	return map[string]enums.IndexedValueType{
		wire.AttributeApp:    enums.INDEXED_VALUE_TYPE_KEYWORD,
		wire.AttributeAgent:  enums.INDEXED_VALUE_TYPE_KEYWORD,
		wire.AttributeStatus: enums.INDEXED_VALUE_TYPE_KEYWORD,
	}
}

// HasSearchAttributes says whether the namespace has our search attributes. Runs work without.
func (e *Engine) HasSearchAttributes(ctx context.Context) (bool, error) {
	a := &e.attributes
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known && (a.has || time.Since(a.asked) < askAgain) {
		return a.has, nil
	}
	missing, err := e.missingAttributes(ctx, e.Namespace)
	if err != nil {
		return false, err
	}
	a.known, a.asked, a.has = true, time.Now(), len(missing) == 0
	return a.has, nil
}

// missingAttributes needs no operator right. With Elasticsearch and in Temporal Cloud the attributes stand in the list;
// with an SQL database they are names that the namespace gives to columns such as Keyword01, and only those are listed.
func (e *Engine) missingAttributes(ctx context.Context, namespace string) (map[string]enums.IndexedValueType, error) {
	there, err := e.Client.GetSearchAttributes(ctx)
	if err != nil {
		return nil, fmt.Errorf("read search attributes: %w", err)
	}
	described, err := e.Client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if err != nil {
		return nil, fmt.Errorf("describe namespace: %w", err)
	}
	missing := ours()
	for name, kind := range there.GetKeys() {
		if missing[name] == kind {
			delete(missing, name)
		}
	}
	for column, name := range described.GetConfig().GetCustomSearchAttributeAliases() {
		if kind, ok := missing[name]; ok && strings.TrimRight(column, "0123456789") == kind.String() {
			delete(missing, name)
		}
	}
	return missing, nil
}

// Setup registers the search attributes that a namespace lacks and returns their names.
func (e *Engine) Setup(ctx context.Context, namespace string) ([]string, error) {
	missing, err := e.missingAttributes(ctx, namespace)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	_, err = e.Client.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: missing})
	var exists *serviceerror.AlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return nil, fmt.Errorf("add search attributes: %w", err)
	}
	var names []string
	for name := range missing {
		names = append(names, name)
	}
	return names, nil
}
