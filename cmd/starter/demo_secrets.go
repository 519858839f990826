package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// recorder keeps the bodies of the answers that pass through it.
type recorder struct {
	next http.RoundTripper
	mu   sync.Mutex
	seen bytes.Buffer
}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err //nolint:wrapcheck // a link of the chain
	}
	resp.Body = &recorded{ReadCloser: resp.Body, to: r}
	return resp, nil
}

func (r *recorder) add(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.Write(p)
}

func (r *recorder) bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.seen.Bytes())
}

type recorded struct {
	io.ReadCloser
	to *recorder
}

// Read implements io.Reader.
func (r *recorded) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.to.add(p[:n])
	return n, err //nolint:wrapcheck // io.EOF
}

// checkSecrets looks for everything that the provider issued, for the client's own state and verifier, and for the model's
// key, where none of it may be.
func (s *stage) checkSecrets(history []byte) error {
	secrets := s.provider.Secrets().All()
	for _, key := range s.keys() {
		name, value, _ := strings.Cut(key, "=")
		if strings.HasSuffix(name, "_API_KEY") && len(value) >= shortest {
			secrets = append(secrets, value)
		}
	}
	needles := needlesOf(secrets)
	s.check("secrets to look for", len(secrets) >= 4, fmt.Sprintf("%d, in %d spellings", len(secrets), len(needles)))
	found := func(where string, hits int) {
		s.check("  found in "+where, hits == 0, count(hits))
	}
	found("the history", hits(history, needles))
	found("HTTP bodies", hits(s.bodies.bytes(), needles))
	databases, logs := 0, 0
	err := filepath.WalkDir(filepath.Join(s.dir, "data"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path) //nolint:gosec // the demo's own directory
		if err != nil {
			return fmt.Errorf("search %s: %w", d.Name(), err)
		}
		if filepath.Base(filepath.Dir(path)) == "log" {
			logs += hits(body, needles)
		} else {
			databases += hits(body, needles)
		}
		return nil
	})
	if err != nil {
		return failed("look for secrets: %w", err)
	}
	found("database files", databases)
	found("logs", logs)
	return nil
}

// shortest is the least length of half a secret that is looked for by itself.
const shortest = 12

// needlesOf spells each secret as it stands, as in a URL, and in base64, in which it may begin at each of three places.
// A long one is cut in two, since a database may break it at the end of a page.
func needlesOf(secrets []string) [][]byte {
	var out [][]byte
	for _, secret := range secrets {
		parts := []string{secret}
		if len(secret) >= 2*shortest {
			parts = []string{secret[:len(secret)/2], secret[len(secret)/2:]}
		}
		for _, part := range parts {
			out = append(out, []byte(part))
			if escaped := url.QueryEscape(part); escaped != part {
				out = append(out, []byte(escaped))
			}
			for shift := range 3 {
				out = append(out, inBase64(base64.RawStdEncoding, part, shift), inBase64(base64.RawURLEncoding, part, shift))
			}
		}
	}
	return out
}

// inBase64 is what stands in the base64 of any text that has part at a place that leaves the remainder shift by three:
// the characters that hold bits of part and of nothing else.
func inBase64(encoding *base64.Encoding, part string, shift int) []byte {
	encoded := encoding.EncodeToString(append(make([]byte, shift), part...))
	first := (shift*8 + 5) / 6
	last := (shift + len(part)) * 8 / 6
	return []byte(encoded[first:last])
}

func hits(body []byte, needles [][]byte) int {
	n := 0
	for _, needle := range needles {
		n += bytes.Count(body, needle)
	}
	return n
}
