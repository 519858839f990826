package main

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A port that was used is nobody's any more, on whatever address, and this machine is no wider open for it.
func TestHeldPorts(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	used, err := config.Listen(t.Context(), "tcp", ":0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(used.Addr().String())
	require.NoError(t, err)
	require.NoError(t, used.Close())

	var s service
	s.hold(t.Context(), port)
	require.NotEmpty(t, s.held)
	for _, l := range s.held {
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		address, ok := l.Addr().(*net.TCPAddr)
		require.True(t, ok)
		require.True(t, address.IP.IsLoopback(), address)
	}
	for _, host := range []string{"", "127.0.0.1", "localhost", "0.0.0.0"} {
		l, err := config.Listen(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			require.NoError(t, l.Close())
		}
		require.Error(t, err, "%q can still be had", host)
	}
}
