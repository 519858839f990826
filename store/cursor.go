package store

import (
	"encoding/base64"
	"strconv"
	"strings"

	"tarry/auth"
)

// What a cursor is of: one of another list is refused.
const (
	cursorAudit    = "a"
	cursorRequests = "r"
	cursorSessions = "s"
)

// cursorOf is where a page ends. Cursors have a form of their own, so that nobody comes to rely on what they are made of.
func cursorOf(kind string, seq int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(kind + strconv.FormatInt(seq, 36)))
}

// seqOf reads a cursor, or returns [auth.ErrCursor].
func seqOf(kind, text string) (int64, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	digits, ours := strings.CutPrefix(string(raw), kind)
	seq, parseErr := strconv.ParseInt(digits, 36, 64)
	if err != nil || !ours || parseErr != nil || seq < 0 {
		return 0, auth.ErrCursor
	}
	return seq, nil
}
