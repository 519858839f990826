package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	persistencespb "go.temporal.io/server/api/persistence/v1"
	"go.temporal.io/server/common"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence"
	"go.temporal.io/server/common/persistence/serialization"
	"go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/common/resolver"
	"go.temporal.io/server/common/searchattribute/sadefs"
	"google.golang.org/protobuf/types/known/durationpb"
)

// ensureNamespace creates the namespace or brings its retention and search attributes up to date, before a server runs
// on the store. Each change is one transaction.
func ensureNamespace(ctx context.Context, store *config.SQL, o Options, logger log.Logger) error {
	types, err := attributeTypes(o.SearchAttributes)
	if err != nil {
		return err
	}
	factory := sql.NewFactory(*store, resolver.NewNoopResolver(), clusterName, logger, metrics.NoopMetricsHandler)
	defer factory.Close()
	metadata, err := factory.NewMetadataStore()
	if err != nil {
		return fmt.Errorf("open namespaces: %w", err)
	}
	manager := persistence.NewMetadataManagerImpl(metadata, serialization.NewSerializer(), logger, clusterName)
	defer manager.Close()

	found, err := manager.GetNamespace(ctx, &persistence.GetNamespaceRequest{Name: o.Namespace})
	var notFound *serviceerror.NamespaceNotFound
	switch {
	case errors.As(err, &notFound):
		detail := newNamespace(o.Namespace)
		if _, err := applyTo(detail.GetConfig(), o.Retention, types); err != nil {
			return err
		}
		if _, err := manager.CreateNamespace(ctx, &persistence.CreateNamespaceRequest{Namespace: detail}); err != nil {
			return fmt.Errorf("create namespace %s: %w", o.Namespace, err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("read namespace %s: %w", o.Namespace, err)
	}

	changed, err := applyTo(found.Namespace.GetConfig(), o.Retention, types)
	if err != nil || !changed {
		return err
	}
	// The version is checked and counted up by the update; the server's caches compare it.
	current, err := manager.GetMetadata(ctx)
	if err != nil {
		return fmt.Errorf("read namespace version: %w", err)
	}
	if err := manager.UpdateNamespace(ctx, &persistence.UpdateNamespaceRequest{
		Namespace:           found.Namespace,
		IsGlobalNamespace:   found.IsGlobalNamespace,
		NotificationVersion: current.NotificationVersion,
	}); err != nil {
		return fmt.Errorf("update namespace %s: %w", o.Namespace, err)
	}
	return nil
}

func newNamespace(name string) *persistencespb.NamespaceDetail {
	return &persistencespb.NamespaceDetail{
		Info: &persistencespb.NamespaceInfo{
			Id:    primitives.NewUUID().String(),
			Name:  name,
			State: enumspb.NAMESPACE_STATE_REGISTERED,
		},
		Config: &persistencespb.NamespaceConfig{
			HistoryArchivalState:    enumspb.ARCHIVAL_STATE_DISABLED,
			VisibilityArchivalState: enumspb.ARCHIVAL_STATE_DISABLED,
		},
		ReplicationConfig: &persistencespb.NamespaceReplicationConfig{
			ActiveClusterName: clusterName,
			Clusters:          []string{clusterName},
		},
		FailoverVersion:             common.EmptyVersion,
		FailoverNotificationVersion: -1,
	}
}

// applyTo reports whether it changed anything.
func applyTo(
	ns *persistencespb.NamespaceConfig, retention time.Duration, types map[string]enumspb.IndexedValueType,
) (bool, error) {
	changed := false
	if ns.GetRetention().AsDuration() != retention {
		ns.Retention = durationpb.New(retention)
		changed = true
	}
	if ns.CustomSearchAttributeAliases == nil {
		ns.CustomSearchAttributeAliases = map[string]string{}
	}
	added, err := addAliases(ns.GetCustomSearchAttributeAliases(), types)
	return changed || added, err
}

// addAliases gives each name that has none a free column of its type. Columns are taken in order, so that two files set
// up alike are alike.
func addAliases(aliases map[string]string, types map[string]enumspb.IndexedValueType) (bool, error) {
	columns := sadefs.GetDBIndexSearchAttributes(nil).GetCustomSearchAttributes()
	columnOf := make(map[string]string, len(aliases))
	for column, name := range aliases {
		columnOf[name] = column
	}
	changed := false
	for _, name := range slices.Sorted(maps.Keys(types)) {
		if column, ok := columnOf[name]; ok {
			if columns[column] != types[name] {
				return false, fmt.Errorf("search attribute %s has type %s in this file, not %s", name, columns[column], types[name])
			}
			continue
		}
		column := freeColumn(columns, aliases, types[name])
		if column == "" {
			return false, fmt.Errorf("search attribute %s: SQLite has no further column of type %s", name, types[name])
		}
		aliases[column] = name
		changed = true
	}
	return changed, nil
}

func freeColumn(columns map[string]enumspb.IndexedValueType, taken map[string]string, typ enumspb.IndexedValueType) string {
	for _, column := range slices.Sorted(maps.Keys(columns)) {
		if _, used := taken[column]; !used && columns[column] == typ {
			return column
		}
	}
	return ""
}
