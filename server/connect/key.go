package connect

import (
	"net/http"

	"tarry/auth"
	"tarry/server/web"
)

// Key is a credential that the person is asked to type in. There is no value in it: a page never shows one.
type Key struct {
	auth.Key

	// Again says that the server did not accept what was given before.
	Again bool
}

// Names of the controls that a [Key] is typed into. The user name's is there for HTTP basic authentication only.
const (
	KeyControl      = "key"
	UsernameControl = "username"
)

// What the person types.
func (k Key) What() string {
	switch {
	case k.Basic():
		return "password"
	case k.Scheme != "":
		return "access token"
	}
	return "API key"
}

// Manner is how it is sent; the name follows.
func (k Key) Manner() string {
	switch {
	case k.Basic():
		return "user name and password (HTTP basic)"
	case k.Scheme != "":
		return "bearer token"
	}
	return k.In
}

func (h *Handler) key(page Page, token, back string) view {
	return view{
		status: http.StatusOK, file: "key.html", Frame: web.Frame{Title: "A key for " + page.ServerHost}, Page: page, Action: AnswerPath, CSRF: token, ReturnTo: back,
	}
}
