package connect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf16"

	"tarry/server/web"
)

// Confirmation is what a person is to approve; its fields are empty once the request has ended.
type Confirmation struct {
	// Hint is what the tool says, or a fixed text.
	Hint string
	// Args are the call's, Payload what the tool offers to be filled in: JSON texts.
	Args    string
	Payload string
}

// PayloadControl is the name of the form's control that [Confirmation.Payload] is edited in.
const PayloadControl = "payload"

func (h *Handler) confirmation(page Page, token, back string) view {
	return view{
		status: http.StatusOK, file: "confirm.html", Frame: web.Frame{Title: "Approve a call"}, Page: page, Action: AnswerPath, CSRF: token, ReturnTo: back,
	}
}

// exact shows JSON whole and as it is: nothing is cut, and characters that would change how the text around them reads are
// shown by their number, as JSON writes them.
func exact(text string) string {
	var pretty bytes.Buffer
	if json.Indent(&pretty, []byte(text), "", "  ") == nil {
		text = pretty.String()
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\n':
			out.WriteRune(r)
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == '\u2028', r == '\u2029', r == unicode.ReplacementChar, r != ' ' && unicode.IsSpace(r):
			if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
				fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
			} else {
				fmt.Fprintf(&out, `\u%04x`, r)
			}
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}
