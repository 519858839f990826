package safehttp

import (
	"errors"
	"io"
)

// cappedBody fails with a TooLargeError at the first byte past its limit. It counts what the caller reads, so a small
// compressed body that unpacks to a large one is caught.
type cappedBody struct {
	body io.ReadCloser
	left int64
	fail error
}

func newCappedBody(body io.ReadCloser, limit int64, host string) *cappedBody {
	return &cappedBody{body: body, left: limit, fail: &TooLargeError{Host: host, Limit: limit}}
}

// Read implements io.Reader.
func (b *cappedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.fail
	}
	if len(p) == 0 {
		return 0, nil
	}
	// One byte more than is left tells "exactly the limit" from "more".
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.body.Read(p)
	if int64(n) > b.left {
		n = int(b.left)
		b.left = -1
		return n, b.fail
	}
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, err //nolint:wrapcheck // a Reader hands on the error it got; http.Client looks at its type
	}
	return n, err //nolint:wrapcheck // io.EOF must stay bare
}

// Close implements io.Closer.
func (b *cappedBody) Close() error {
	return b.body.Close() //nolint:wrapcheck // a thin wrapper
}
