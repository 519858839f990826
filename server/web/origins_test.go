package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/server/web"
)

func origins(t *testing.T, entries ...string) web.Origins {
	t.Helper()
	out, err := web.ParseOrigins(entries)
	require.NoError(t, err)
	return out
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	o := origins(t, "http://localhost:4200", "https://ui.example", "https://xn--bcher-kva.example", "http://[::1]:4200",
		`regex:https://.*\.corp\.example`, `regex:http://localhost:42[0-9]{2}|https://dev\.example:8443`, `regex:(?i)https://MIXED\.example`)
	for _, origin := range []string{
		"http://localhost:4200", "https://ui.example", "https://xn--bcher-kva.example", "http://[::1]:4200",
		"https://a.corp.example", "https://a.b.corp.example", "http://localhost:4211", "https://dev.example:8443", "https://mixed.example",
	} {
		require.True(t, o.Allow(origin), origin)
	}
	for _, origin := range []string{
		"", "*", "null", "http://localhost", "http://localhost:42", "http://localhost:42000", "http://localhost:4300", "https://localhost:4200", "http://localhost:4200/", "http://LOCALHOST:4200",
		"http://localhost:4200.evil.example", "http://localhost:4200@evil.example", "http://user@localhost:4200", " http://localhost:4200", "http://localhost:4200 ", "http://localhost:4200\n",
		"http://localhost:4200,https://evil.example", "http://localhost:4200 https://evil.example",
		"https://corp.example", "https://evilcorp.example", "https://a.corp.example.evil.example", "https://a.corpXexample", "http://a.corp.example", "https://a.corp.example:8443",
		"https://evil.example/.corp.example", "https://evil.example?.corp.example", "https://evil.example#.corp.example", "https://evil.example:80.corp.example", "https://evil.example\\.corp.example",
		"https://evil.example@a.corp.example", "https://evil.example%2f.corp.example", "https://a.corp.example:443", "https://A.corp.example", "https://ä.corp.example", "https://a。corp.example",
		"https://MIXED.example", "https://mıxed.example", "https://bücher.example", "https://ui.example:443", "https://ui.example.", "https://sub.ui.example",
		"https://evil.example\nhttps://a.corp.example", "https://" + strings.Repeat("a", 300) + ".corp.example",
		"xhttps://dev.example:8443", "https://dev.example:84430", "javascript://a.corp.example", "file://", "moz-extension://a.corp.example", "http://[::1]", "http://[::1]:4200x", "http://[0:0::1]:4200", "http://::1:4200",
	} {
		require.False(t, o.Allow(origin), origin)
	}
	require.False(t, web.Origins{}.Allow("http://localhost:4200"))
	require.True(t, web.Origins{}.Empty())
	require.Equal(t, []string{"http://localhost:4200/dev-ui/", "https://ui.example/dev-ui/"}, origins(t, "http://localhost:4200", "http://plain.example", "https://ui.example", `regex:https://.*\.corp\.example`).WebUIs())
}

func TestOriginsThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		"*":                               "any page of any site",
		"null":                            "is no origin",
		"localhost:4200":                  "is no origin",
		"http://localhost:4200/":          "write http://localhost:4200",
		"http://localhost:4200/dev-ui/":   "write http://localhost:4200",
		"HTTP://Localhost:4200":           "write http://localhost:4200",
		"https://ui.example:443":          "write https://ui.example",
		"https://user:pass@ui.example":    "write https://ui.example",
		"https://bücher.example":          "xn--",
		"https://*.example":               "is no origin",
		"ftp://ui.example":                "is no origin",
		"http://localhost:99999":          "is no origin",
		"https://":                        "is no origin",
		"regex:":                          "", // nothing matches it, and ADK leaves it out
		"regex:.*":                        "any page of any site",
		"regex:https?://.+":               "any page of any site",
		"regex:https://.*|null":           "any page of any site",
		"regex:null":                      "any page of any site",
		`regex:https://[^/]+(:\d+)?`:      "any page of any site",
		`regex:https://ui.example`:        `write \. for a dot`,
		`regex:https://(.)*\.example`:     `write \. for a dot`,
		`regex:https://.?\.example`:       `write \. for a dot`,
		"regex:https://(":                 "no regular expression",
		`regex:\Qhttps://ui.example`:      "no regular expression",
		`regex:https://a)|(?:.*`:          "no regular expression",
		`regex:https://(?=ui)\.example`:   "no regular expression",
		`regex:https://.*\.corp\.example`: "",
	} {
		_, err := web.ParseOrigins([]string{"http://localhost:1", entry})
		if want == "" {
			require.NoError(t, err, entry)
			continue
		}
		require.ErrorContains(t, err, want, entry)
		require.NotContains(t, err.Error(), "localhost:1\"")
	}
}

func TestCORS(t *testing.T) {
	t.Parallel()
	const ui, evil = "http://localhost:4200", "https://evil.example"
	h := web.CORS(origins(t, ui, `regex:https://.*\.corp\.example`))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	call := func(method, asks string, from ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "/", nil)
		r.Header["Origin"] = from
		if asks != "" {
			r.Header.Set("Access-Control-Request-Method", asks)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Empty(t, w.Header().Get("Access-Control-Allow-Credentials"))
		return w
	}
	for _, origin := range []string{ui, "https://a.corp.example"} {
		for _, method := range []string{"POST", "PATCH", "DELETE"} {
			w := call(http.MethodOptions, method, origin)
			require.Equal(t, http.StatusNoContent, w.Code)
			require.Equal(t, origin, w.Header().Get("Access-Control-Allow-Origin"))
			require.Contains(t, strings.Split(w.Header().Get("Access-Control-Allow-Methods"), ", "), method)
			for _, name := range []string{"Content-Type", "Authorization", "Last-Event-ID", "Idempotency-Key"} {
				require.Contains(t, strings.Split(w.Header().Get("Access-Control-Allow-Headers"), ", "), name)
			}
		}
		w := call(http.MethodPost, "", origin)
		require.Equal(t, http.StatusTeapot, w.Code)
		require.Equal(t, "Origin", w.Header().Get("Vary"))
		for _, name := range []string{web.RequestIDHeader, "Link", "Retry-After"} {
			require.Contains(t, strings.Split(w.Header().Get("Access-Control-Expose-Headers"), ", "), name)
		}
	}
	require.Equal(t, http.StatusTeapot, call(http.MethodOptions, "", ui).Code, "no preflight request")
	for _, from := range [][]string{{evil}, {"null"}, {ui, evil}, {ui, ui}} {
		w := call(http.MethodOptions, "POST", from...)
		require.Equal(t, http.StatusTeapot, w.Code)
		require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
		require.Equal(t, "Origin", w.Header().Get("Vary"), "a cache must not hand the answer to another origin")
	}
}
