package signin

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"

	"tarry/agent"
	"tarry/auth"
)

// personPrefix begins the user id of everybody who signs in; the names of services cannot.
const personPrefix = "u-"

// Me stands in paths for the caller's own user id.
const Me = "me"

// UserID is the id of a person in paths and rows: a digest of issuer and subject, each with its length, so that no two
// people share one and none can choose theirs. It never changes; it is no secret.
func UserID(issuer, subject string) string {
	sum := sha256.New()
	for _, part := range []string{"tarry/user/1", issuer, subject} {
		_ = binary.Write(sum, binary.BigEndian, uint64(len(part))) // a hash takes everything
		sum.Write([]byte(part))
	}
	return personPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum.Sum(nil)))
}

// ofPerson is a person's principal: in every app they act for themselves alone.
func ofPerson(p auth.Person, mode string) Principal {
	id := UserID(p.Issuer, p.Subject)
	name := p.Name
	if name == "" {
		name = p.Subject
	}
	out := NewPrincipal(name, id, func(o agent.Owner) bool { return o.User == id })
	out.User, out.Mode = id, mode
	return out
}
