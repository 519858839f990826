package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"tarry/auth"
	"tarry/engine"
)

// fakeTemporal has a namespace with attributes, listed or as names of columns.
type fakeTemporal struct {
	client.Client
	listed    map[string]enums.IndexedValueType
	columns   map[string]string
	described []string
}

func (f *fakeTemporal) GetSearchAttributes(context.Context) (*workflowservice.GetSearchAttributesResponse, error) {
	return &workflowservice.GetSearchAttributesResponse{Keys: f.listed}, nil
}

func (f *fakeTemporal) WorkflowService() workflowservice.WorkflowServiceClient {
	return &fakeService{fake: f}
}

type fakeService struct {
	workflowservice.WorkflowServiceClient
	fake *fakeTemporal
}

func (s *fakeService) DescribeNamespace(_ context.Context, r *workflowservice.DescribeNamespaceRequest, _ ...grpc.CallOption) (*workflowservice.DescribeNamespaceResponse, error) {
	s.fake.described = append(s.fake.described, r.GetNamespace())
	return &workflowservice.DescribeNamespaceResponse{Config: &namespacepb.NamespaceConfig{CustomSearchAttributeAliases: s.fake.columns}}, nil
}

func TestHasSearchAttributes(t *testing.T) {
	t.Parallel()
	const keyword = enums.INDEXED_VALUE_TYPE_KEYWORD
	for name, c := range map[string]struct {
		fake fakeTemporal
		want bool
	}{
		"none": {},
		"listed": {fakeTemporal{listed: map[string]enums.IndexedValueType{
			"TarryApp": keyword, "TarryAgent": keyword, "TarryStatus": keyword,
		}}, true},
		"columns of an SQL database": {fakeTemporal{
			listed:  map[string]enums.IndexedValueType{"Keyword01": keyword},
			columns: map[string]string{"Keyword01": "TarryApp", "Keyword02": "TarryAgent", "Keyword10": "TarryStatus"},
		}, true},
		"one is missing":       {fakeTemporal{columns: map[string]string{"Keyword01": "TarryApp", "Keyword02": "TarryAgent"}}, false},
		"one is of other type": {fakeTemporal{columns: map[string]string{"Keyword01": "TarryApp", "Keyword02": "TarryAgent", "Text01": "TarryStatus"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := engine.New(engine.Config{Client: &c.fake, Namespace: "here", UserKey: auth.NewSecret(strings.Repeat("k", 32))})
			require.NoError(t, err)
			has, err := e.HasSearchAttributes(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.want, has)
			require.Equal(t, []string{"here"}, c.fake.described)
		})
	}
}
