package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"tarry/auth"
	"tarry/internal/safehttp"
)

// maxDocument bounds a metadata document in bytes.
const maxDocument = 1 << 20

// errAbsent: there is no such document here; look at the next place.
var errAbsent = errors.New("no metadata there")

// get reads a JSON document into out. Absent are 4xx and answers that are no JSON object, which is what servers with a
// page for everything send; 5xx and network errors are [auth.ErrUnavailable].
func (d *Discoverer) get(ctx context.Context, url string, out any) error {
	host := Host(url)
	if !usable(url, d.AllowLoopback) {
		return fmt.Errorf("%w: metadata address on %s is not https", auth.ErrMisconfigured, host)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("%w: metadata address on %s", auth.ErrMisconfigured, host)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	resp, err := d.HTTP.Do(req)
	if err != nil {
		return Unreachable(ctx, host, err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusOK:
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout || resp.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("%w: metadata on %s: HTTP %d", auth.ErrUnavailable, host, resp.StatusCode)
	default:
		return errAbsent
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return Unreachable(ctx, host, err)
	}
	if len(body) > maxDocument {
		return fmt.Errorf("%w: metadata on %s is too large", auth.ErrMisconfigured, host)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return errAbsent
	}
	return nil
}

// Unreachable turns an error of an HTTP client into one without URL or body: [auth.ErrMisconfigured] for addresses that
// may not be reached, the context's own error if that ended, else [auth.ErrUnavailable].
func Unreachable(ctx context.Context, host string, err error) error {
	var blocked *safehttp.BlockedError
	var large *safehttp.TooLargeError
	switch {
	case errors.As(err, &blocked):
		return fmt.Errorf("%w: %w", auth.ErrMisconfigured, blocked)
	case errors.As(err, &large):
		return fmt.Errorf("%w: %w", auth.ErrMisconfigured, large)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %s: %w", auth.ErrUnavailable, host, ctx.Err())
	}
	return fmt.Errorf("%w: %s cannot be reached", auth.ErrUnavailable, host)
}
