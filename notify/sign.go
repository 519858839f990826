package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tarry/auth"
)

const (
	secretPrefix = "whsec_"
	minSecret    = 24
	maxSecret    = 64
)

var errSecret = errors.New("not a webhook secret: whsec_ and 24 to 64 random bytes in base64, such as of: echo whsec_$(openssl rand -base64 32)")

// key decodes a secret. What it holds is not in the error.
func key(s auth.Secret) ([]byte, error) {
	text, ok := strings.CutPrefix(s.Reveal(), secretPrefix)
	raw, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(raw) < minSecret || len(raw) > maxSecret {
		return nil, errSecret
	}
	return raw, nil
}

// sign sets the three headers of the specification; each secret makes one signature.
func sign(h http.Header, id string, at time.Time, body []byte, secrets []auth.Secret) error {
	stamp := strconv.FormatInt(at.Unix(), 10)
	var signatures []string
	for _, s := range secrets {
		k, err := key(s)
		if err != nil {
			return fmt.Errorf("sign: %w", err)
		}
		mac := hmac.New(sha256.New, k)
		_, _ = mac.Write([]byte(id + "." + stamp + ".")) // a hash takes everything
		_, _ = mac.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", stamp)
	h.Set("webhook-signature", strings.Join(signatures, " "))
	return nil
}
