package vault

import "encoding/binary"

// AD is the associated data of one sealed value: where it belongs. All of it must be the same when the value is opened.
// Parts that a row does not have stay empty.
type AD struct {
	App           string
	User          string
	Row           string
	Issuer        string
	Resource      string
	Client        string
	TokenEndpoint string
	Column        string
	Version       int64
}

// adFormat stands first, so that a later encoding can never be mistaken for this one.
const adFormat = "tarry/ad/1"

// encode is injective: every part carries its length, so no two values of AD meet in one encoding.
func (a AD) encode() []byte {
	out := []byte{}
	for _, part := range []string{adFormat, a.App, a.User, a.Row, a.Issuer, a.Resource, a.Client, a.TokenEndpoint, a.Column} {
		out = binary.BigEndian.AppendUint64(out, uint64(len(part)))
		out = append(out, part...)
	}
	return binary.BigEndian.AppendUint64(out, uint64(a.Version)) //nolint:gosec // G115: the bit pattern is what counts
}
