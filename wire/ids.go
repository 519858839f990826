package wire

import (
	"crypto/sha1" //nolint:gosec // UUIDv5 is defined over SHA-1 (RFC 9562 section 5.5); nothing here is a secret
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strings"
)

// Roles of the things that one activity makes.
const (
	RoleEvent   = "event"
	RoleRequest = "request"
	RoleCall    = "call"
	RoleAnswer  = "answer"
	RoleInterim = "interim"
)

// EventID derives the id of what an activity makes: UUIDv5 (RFC 9562 section 5.5) of run id, activity id, locality and
// role. A retried attempt makes the same id; a reset run, whose run id differs, makes a new one. Activity ids of local
// and ordinary activities overlap, hence local.
func EventID(runID, activityID string, local bool, role string) string {
	const namespace = "tarry.event\x00"
	h := sha1.New() //nolint:gosec // see the import
	fmt.Fprintf(h, "%s%s\x00%s\x00%t\x00%s", namespace, runID, activityID, local, role)
	var u [16]byte
	copy(u[:], h.Sum(nil))
	u[6] = u[6]&0x0f | 0x50
	u[8] = u[8]&0x3f | 0x80
	s := hex.EncodeToString(u[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// CallID shortens a derived id for function calls and requests: 80 bits, in the form that ADK's client ids have.
func CallID(runID, activityID string, local bool, role string) string {
	return "adk-" + short(EventID(runID, activityID, local, role))
}

func short(s string) string {
	sum := sha256.Sum256([]byte(s))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:10]))
}

// WorkflowID is the id of a session's workflow; userDigest is the HMAC that package engine makes of the user.
func WorkflowID(app, userDigest, session string) string {
	return "tarry/" + app + "/" + userDigest + "/" + session
}
