package keys

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/auth/vault"
)

// Bounds of what is typed in, in bytes. Bearer tokens may be JWTs with many claims; servers take headers of 8 KiB in all.
const (
	MaxSecret   = 8 << 10
	MaxUsername = 256
)

// trimmed drops the blanks that come along when a key is copied. Those of passwords may be meant.
func trimmed(v auth.KeyValue, k auth.Key) auth.KeyValue {
	if !k.Basic() {
		v.Secret = auth.NewSecret(strings.TrimSpace(v.Secret.Reveal()))
	}
	return v
}

// Check says whether a value can be sent; the error is an [*auth.AnswerError] that repeats nothing of it.
func (*Service) Check(k auth.Key, v auth.KeyValue) error { return check(trimmed(v, k), k) }

func check(v auth.KeyValue, k auth.Key) error {
	what := "key"
	switch {
	case k.Basic():
		what = "password"
	case k.Scheme != "":
		what = "token"
	}
	secret, user := v.Secret.Reveal(), v.Username.Reveal()
	switch {
	case k.Basic() && user == "":
		return wrong("the user name is missing")
	case !k.Basic() && user != "":
		return wrong("no user name was asked for")
	case secret == "" && !k.Basic(): // there are servers that take the key for a user name, and no password
		return wrong("the %s is missing", what)
	case len(secret) > MaxSecret:
		return wrong("the %s is longer than %d bytes", what, MaxSecret)
	case len(user) > MaxUsername:
		return wrong("the user name is longer than %d bytes", MaxUsername)
	case strings.Contains(user, ":"): // RFC 7617 section 2
		return wrong("a user name with a colon cannot be sent")
	case !sendable(user, false) || !sendable(secret, !k.Basic() && k.In != agent.InQuery):
		return wrong("the %s has characters that cannot be sent; copy it again", what)
	case k.In == agent.InCookie && strings.ContainsAny(secret, " \",;\\"): // RFC 6265 section 4.1.1
		return wrong("the key has characters that a cookie cannot have")
	case k.Scheme == agent.SchemeBearer && strings.Contains(secret, " "):
		return wrong("the token has a blank in it; leave out the word Bearer")
	}
	return nil
}

func wrong(format string, args ...any) error {
	return &auth.AnswerError{Text: fmt.Sprintf(format, args...)}
}

// sendable says whether text can stand in a header, a user name or a query; plain limits it to what headers take as it is.
func sendable(text string, plain bool) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || plain && r > '~' })
}

// sealed is what the access column of a grant holds for a user name and password. Keys and tokens stand there as they are.
type sealed struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

func encode(v auth.KeyValue, k auth.Key) (auth.Secret, error) {
	if !k.Basic() {
		return v.Secret, nil
	}
	raw, err := json.Marshal(sealed{v.Username.Reveal(), v.Secret.Reveal()}) //nolint:gosec // for the vault
	if err != nil {
		return auth.Secret{}, fmt.Errorf("encode password: %w", err)
	}
	return auth.NewSecret(string(raw)), nil
}

func decode(k auth.Key, plain auth.Secret) (auth.KeyValue, error) {
	if !k.Basic() {
		return auth.KeyValue{Secret: plain}, nil
	}
	var s sealed
	if err := json.Unmarshal([]byte(plain.Reveal()), &s); err != nil {
		return auth.KeyValue{}, fmt.Errorf("decode password: %w", vault.ErrCipher)
	}
	return auth.KeyValue{Username: auth.NewSecret(s.Username), Secret: auth.NewSecret(s.Password)}, nil
}

// learn tells a scrubber in which forms the value is sent.
func learn(v auth.KeyValue, scrub *auth.Scrubber) {
	scrub.Add(v.Secret)
	if !v.Username.IsZero() {
		scrub.Add(auth.NewSecret(v.Username.Reveal() + ":" + v.Secret.Reveal()))
	}
}

// columnAccess is the column of a grant that holds the value.
const columnAccess = "access"

// ad is that of an access token which does not expire: whoever seals rows anew need not tell grants apart.
func ad(g oauth.Grant) vault.AD {
	return vault.AD{
		App: g.Slot.Owner.App, User: g.Slot.Owner.User, Row: "grant/" + g.ID, Issuer: g.Slot.Issuer, Resource: g.Slot.Resource,
		Client: g.Client.ID, TokenEndpoint: g.Provider.TokenEndpoint, Column: columnAccess,
	}
}
