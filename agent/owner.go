package agent

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Owner is whom a session, a request or a credential belongs to. The zero value owns nothing and is refused by every
// store call. An Owner comes from an authenticated principal, never straight from a path or a body.
type Owner struct {
	App  string `json:"app"`
	User string `json:"user"`
}

// MaxIDLength bounds app names, user ids and session ids, in bytes: they become parts of Temporal ids, which SQL stores
// limit to 255.
const MaxIDLength = 64

// ErrInvalidOwner is returned by [Owner.Validate].
var ErrInvalidOwner = errors.New("invalid owner")

// Validate refuses an owner whose parts are missing, too long or contain control characters.
func (o Owner) Validate() error {
	if err := CheckID("app", o.App); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidOwner, err)
	}
	if err := CheckID("user", o.User); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidOwner, err)
	}
	return nil
}

// CheckID says whether id can serve as an app name, user id or session id. The error names the field.
func CheckID(field, id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%s id is empty", field)
	case len(id) > MaxIDLength:
		return fmt.Errorf("%s id is %d bytes long, at most %d are allowed", field, len(id), MaxIDLength)
	case id == "." || id == "..":
		return fmt.Errorf("%s id %q would be lost in a URL path", field, id)
	case strings.ContainsFunc(id, func(r rune) bool { return unicode.IsControl(r) || r == '/' || r == utf8.RuneError }):
		return fmt.Errorf("%s id %q contains a slash, a control character or invalid UTF-8", field, id)
	}
	return nil
}
