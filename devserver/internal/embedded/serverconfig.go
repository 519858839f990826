package embedded

import (
	"math/rand/v2"
	"strconv"
	"time"

	"tarry/devserver/internal/datafile"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/membership/static"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
)

// clusterName is stored in the file and can never change.
const clusterName = "active"

// sqlConfig says how SQLite is opened. The attributes that are not parameters of a SQLite URI become pragmas, in
// alphabetical order. The server opens one connection and shares it.
func sqlConfig(file string) *config.SQL {
	if file == "" {
		return &config.SQL{
			PluginName:        sqliteplugin.PluginName,
			DatabaseName:      "tarry-" + strconv.FormatUint(rand.Uint64(), 36), //nolint:gosec // a name, no secret
			ConnectAttributes: map[string]string{"mode": "memory", "cache": "shared"},
		}
	}
	return &config.SQL{
		PluginName:   sqliteplugin.PluginName,
		DatabaseName: datafile.URI(file),
		ConnectAttributes: map[string]string{
			"mode":         "rw",
			"busy_timeout": "10000",
			"journal_mode": "wal",
			"synchronous":  "full",
		},
	}
}

// serverConfig describes four services in one process. No HTTP port, metrics, pprof or archival.
func serverConfig(o Options, store *config.SQL, ports map[primitives.ServiceName]int) *config.Config {
	const storeName = "sqlite"
	frontend := hostPort(o.IP, ports[primitives.FrontendService])
	services := make(map[string]config.Service, len(ports))
	for name, port := range ports {
		services[string(name)] = config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: o.IP}}
	}
	disabled := "disabled"
	return &config.Config{
		Global: config.Global{
			Membership: config.Membership{BroadcastAddress: o.IP, MaxJoinDuration: 10 * time.Second},
		},
		Persistence: config.Persistence{
			DefaultStore:    storeName,
			VisibilityStore: storeName,
			// Stored in the file and can never change. One connection to SQLite leaves nothing to gain from more.
			NumHistoryShards: 1,
			DataStores:       map[string]config.DataStore{storeName: {SQL: store}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: frontend},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services:            services,
		PublicClient:        config.PublicClient{HostPort: frontend},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: disabled},
			Visibility: config.VisibilityArchival{State: disabled},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: disabled},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: disabled},
		}},
	}
}

func staticHosts(ip string, ports map[primitives.ServiceName]int) map[primitives.ServiceName]static.Hosts {
	hosts := make(map[primitives.ServiceName]static.Hosts, len(ports))
	for name, port := range ports {
		hosts[name] = static.SingleLocalHost(hostPort(ip, port))
	}
	return hosts
}

func dynamicConfig(overrides map[string]any) dynamicconfig.StaticClient {
	values := dynamicconfig.StaticClient{
		// Calls home otherwise.
		dynamicconfig.EnableServerVersionCheck.Key(): false,
		// Needs the HTTP port.
		dynamicconfig.EnableNexus.Key(): false,
		// Steps are taken when they are due, and not up to 20 times a second.
		dynamicconfig.TransferProcessorMaxPollRPS.Key():   5000,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():      1000,
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): 1000,
		// Makes up for clocks of hosts that differ, by delaying every timer to a second from now at least.
		dynamicconfig.TimerProcessorMaxTimeShift.Key(): 10 * time.Millisecond,
		// With four partitions one start in a hundred takes two seconds: its task waits in a partition nobody asks.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,
		// One hop less for an activity.
		dynamicconfig.EnableActivityEagerExecution.Key(): true,
		// Tests register search attributes and use them at once.
		dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key():      true,
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 100,
		// The default is sized for a host that serves a cluster.
		dynamicconfig.HistoryCacheHostLevelMaxSize.Key(): 8192,
	}
	for key, value := range overrides {
		values[dynamicconfig.MakeKey(key)] = value
	}
	return values
}
