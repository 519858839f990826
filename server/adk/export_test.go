package adk

import "tarry/auth"

// CheckReply says what is wrong with a reply to a question that was asked with args, or "".
func CheckReply(h *Handler, response any, args map[string]any, correlator string) string {
	return h.check(response, args, auth.Request{Correlator: correlator})
}
