package openapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"tarry/server/openapi"
)

func document(t *testing.T) (body []byte, tree map[string]any) {
	t.Helper()
	body, err := openapi.Document()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(body, &tree))
	return body, tree
}

// Examples are held against their schemas as well: the validator does that.
func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	body, _ := document(t)
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(body)
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context()))
}

func TestServed(t *testing.T) {
	t.Parallel()
	h, err := openapi.New()
	require.NoError(t, err)
	mux := http.NewServeMux()
	h.Mount(mux)
	get := func(etag string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/openapi.json", nil)
		r.Header.Set("If-None-Match", etag)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w
	}
	first := get("")
	require.Equal(t, http.StatusOK, first.Code)
	require.Equal(t, "application/json", first.Header().Get("Content-Type"))
	want, _ := document(t)
	require.JSONEq(t, string(want), first.Body.String())
	again := get(first.Header().Get("ETag"))
	require.Equal(t, http.StatusNotModified, again.Code)
	require.Empty(t, again.Body.String())
}

// Every operation says what it is called, in one word that no other has, what it is for and where it belongs.
func TestOperationsAreNamed(t *testing.T) {
	t.Parallel()
	_, tree := document(t)
	seen := map[string]string{}
	for path, item := range tree["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			op, ok := operation.(map[string]any)
			if !ok || method == "parameters" {
				continue
			}
			where := strings.ToUpper(method) + " " + path
			id := fmt.Sprint(op["operationId"])
			require.Regexp(t, `^[a-z][A-Za-z]+$`, id, where)
			require.Empty(t, seen[id], "%s and %s have one operationId", where, seen[id])
			seen[id] = where
			require.NotEmpty(t, op["summary"], where)
			require.Len(t, op["tags"], 1, where)
		}
	}
}
