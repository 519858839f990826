package dial_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"tarry/cmd/internal/dial"
)

// Between processes of one machine nothing is compressed; what goes over a network is, as the SDK does it.
func TestCompression(t *testing.T) {
	t.Setenv("TEMPORAL_CONFIG_FILE", t.TempDir()+"/none.toml")
	for address, compressed := range map[string]bool{
		"": false, "127.0.0.1:7233": false, "127.0.0.9:1": false, "localhost:7233": false, "[::1]:7233": false, "[::ffff:127.0.0.1]:7233": false,
		"temporal:7233": true, "10.0.0.1:7233": true, "localhost.example.com:7233": true, "team.abc.tmprl.cloud:7233": true, "dns:///127.0.0.1:7233": true,
	} {
		t.Setenv("TEMPORAL_ADDRESS", address)
		options, err := dial.Options()
		require.NoError(t, err, address)
		if compressed {
			require.Nil(t, options.ConnectionOptions.GrpcCompression, address)
		} else {
			require.IsType(t, &client.GrpcCompressionNone{}, options.ConnectionOptions.GrpcCompression, address)
		}
	}
}
