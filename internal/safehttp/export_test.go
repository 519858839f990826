package safehttp

import (
	"context"
	"net"
)

// SetConnect replaces the last step of a dial, after the check, so that a test can stand in for the internet.
func (c *Client) SetConnect(connect func(ctx context.Context, network, address string) (net.Conn, error)) {
	for _, d := range c.dialers {
		d.connect = connect
	}
}
