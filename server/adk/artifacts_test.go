package adk_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/session"
)

const artifacts = sessions + "/s1/artifacts"

func (b *bundle) gives(want int, method, path string, body any) string {
	b.t.Helper()
	status, out := b.do(method, path, body)
	require.Equal(b.t, want, status, "%s %s: %s", method, path, out)
	return out
}

// kept is a session with artifacts: two versions of a text, a picture in a folder, a file of the user's.
func kept(t *testing.T) *bundle {
	t.Helper()
	b := setup(t)
	b.gives(200, "POST", sessions, `{"sessionId":"s1"}`)
	b.gives(200, "POST", sessions, `{"sessionId":"s2"}`)
	b.gives(200, "POST", "/apps/tickets/users/bob/sessions", `{"sessionId":"s1"}`)
	for _, body := range []string{
		`{"filename":"report.txt","artifact":{"text":"first"},"customMetadata":{"by":"ann"}}`,
		`{"filename":"report.txt","artifact":{"text":"second <b>"}}`,
		`{"filename":"img/a b.png","artifact":{"inline_data":{"mime_type":"image/png","data":"-_8=","display_name":"a photo"}},"custom_metadata":null}`,
		`{"filename":"user:shared/list.csv","artifact":{"fileData":{"fileUri":"gs://bucket/list.csv","mimeType":"text/csv"}}}`,
		`{"filename":"versions","artifact":{"text":"an odd name"}}`,
	} {
		b.gives(200, "POST", artifacts, body)
	}
	return b
}

func TestArtifacts(t *testing.T) {
	t.Parallel()
	b := kept(t)
	type of struct {
		path   string
		status int
		want   string
	}
	for _, c := range []of{
		{"", 200, `["img/a b.png","report.txt","user:shared/list.csv","versions"]`},
		{"/report.txt", 200, `{"text":"second \u003cb\u003e"}`},
		{"/report.txt?version=0", 200, `{"text":"first"}`},
		{"/report.txt?version=1", 200, `{"text":"second \u003cb\u003e"}`},
		{"/report.txt?version=2", 404, "artifact report.txt does not exist"},
		{"/report.txt?version=-1", 404, "artifact report.txt does not exist"},
		{"/report.txt?version=x", 422, "neither a number nor latest"},
		{"/report.txt/versions", 200, `[0,1]`},
		{"/report.txt/versions/0", 200, `{"text":"first"}`},
		{"/report.txt/versions/latest", 200, `{"text":"second \u003cb\u003e"}`},
		{"/report.txt/versions/7", 404, "artifact report.txt does not exist"},
		{"/report.txt/versions/0x0", 422, "neither a number nor latest"},
		{"/report.txt/versions/0/metadata", 200, `"canonicalUri":"artifact://apps/tickets/users/ann/sessions/s1/artifacts/report.txt/versions/0"`},
		{"/report.txt/versions/0/metadata", 200, `"customMetadata":{"by":"ann"}`},
		{"/report.txt/versions/latest/metadata", 200, `"version":1,`},
		{"/report.txt/versions/9/metadata", 404, "artifact report.txt does not exist"},
		{"/report.txt/versions/metadata", 200, `[{"version":0,`},
		{"/nothing", 404, "artifact nothing does not exist"},
		{"/nothing/versions", 200, `[]`},
		{"/nothing/versions/metadata", 200, `[]`},
		{"/img/a%20b.png", 200, `{"inlineData":{"data":"+/8=","displayName":"a photo","mimeType":"image/png"}}`},
		{"/img%2Fa%20b.png/versions/0", 200, `{"inlineData":{"data":"+/8=","displayName":"a photo","mimeType":"image/png"}}`},
		{"/img%2Fa%20b.png%2Fversions%2F0", 200, `{"inlineData":{"data":"+/8=","displayName":"a photo","mimeType":"image/png"}}`},
		{"/img/a%20b.png/versions/0/metadata", 200, `"mimeType":"image/png"`},
		{"/user:shared/list.csv", 200, `{"fileData":{"fileUri":"gs://bucket/list.csv","mimeType":"text/csv"}}`},
		{"/user%3Ashared%2Flist.csv/versions", 200, `[0]`},
		{"/versions", 200, `{"text":"an odd name"}`},
		{"/versions/versions", 200, `[0]`},
		{"/versions/versions/0", 200, `{"text":"an odd name"}`},
		{"/versions/versions/latest/metadata", 200, `"mimeType":"text/plain"`},
		{"/", 400, "is empty"},
		{"/a%2F%2Fb", 400, "a URL would lose"},
		{"/a%00b", 400, "control character"},
		{"/..%2F..%2Fs2", 400, "a URL would lose"},
		{"/" + strings.Repeat("n", 300), 400, "at most 256"},
	} {
		require.Contains(t, b.gives(c.status, "GET", artifacts+c.path, nil), c.want, c.path)
	}
	// The user's files are there in other sessions, and nobody else's.
	require.Equal(t, `["user:shared/list.csv"]`, b.gives(200, "GET", sessions+"/s2/artifacts", nil))
	require.Equal(t, `[]`, b.gives(200, "GET", "/apps/tickets/users/bob/sessions/s1/artifacts", nil))
	for _, path := range []string{"/report.txt", "/user:shared/list.csv", "/report.txt/versions/0/metadata"} {
		b.gives(404, "GET", "/apps/tickets/users/bob/sessions/s1/artifacts"+path, nil)
		b.gives(404, "GET", "/apps/other/users/ann/sessions/s1/artifacts"+path, nil)
		b.gives(404, "GET", sessions+"/s9/artifacts"+path, nil)
		b.gives(403, "GET", "/apps/tickets/users/eve/sessions/s1/artifacts"+path, nil)
	}
	b.gives(404, "GET", sessions+"/s9/artifacts", nil)
	b.gives(404, "GET", sessions+"/s9/artifacts/report.txt/versions", nil)
	b.gives(404, "POST", sessions+"/s9/artifacts", `{"filename":"a","artifact":{"text":"x"}}`)
	b.gives(404, "DELETE", sessions+"/s9/artifacts/report.txt", nil)
	b.gives(200, "DELETE", "/apps/tickets/users/bob/sessions/s1/artifacts/user:shared/list.csv", nil)

	require.Equal(t, "null", b.gives(200, "DELETE", artifacts+"/img%2Fa%20b.png", nil))
	require.Equal(t, "null", b.gives(200, "DELETE", artifacts+"/report.txt", nil))
	require.Equal(t, "null", b.gives(200, "DELETE", artifacts+"/report.txt", nil), "again")
	require.Equal(t, `["user:shared/list.csv","versions"]`, b.gives(200, "GET", artifacts, nil))
	require.Contains(t, b.gives(200, "POST", artifacts, `{"filename":"report.txt","artifact":{"text":"anew"}}`), `"version":0`)
	b.gives(200, "DELETE", sessions+"/s1", nil)
	b.gives(404, "GET", artifacts+"/report.txt", nil)
	b.gives(200, "GET", sessions+"/s2/artifacts/user:shared/list.csv", nil)
}

func TestSaveArtifact(t *testing.T) {
	t.Parallel()
	b := kept(t)
	out := decode(t, b.gives(200, "POST", artifacts, `{"filename":"a.json","artifact":{"inlineData":{"data":"e30","mimeType":"application/json"}},"customMetadata":{"n":1},"unknown":true}`))
	require.Positive(t, out["createTime"])
	delete(out, "createTime")
	require.Equal(t, map[string]any{
		"version": 0.0, "mimeType": "application/json", "customMetadata": map[string]any{"n": 1.0},
		"canonicalUri": "artifact://apps/tickets/users/ann/sessions/s1/artifacts/a.json/versions/0",
	}, out)
	for body, c := range map[string]struct {
		status int
		says   string
	}{
		``:                                 {400, "filename is missing"},
		`[]`:                               {400, "not a JSON object"},
		`{"filename":7}`:                   {400, "filename is not a string"},
		`{"filename":"a"}`:                 {400, "no content"},
		`{"filename":"a","artifact":null}`: {400, "no content"},
		`{"filename":"a","artifact":{}}`:   {400, "no content"},
		`{"filename":"a","artifact":{"text":""}}`:                                                                                           {400, "no content"},
		`{"filename":"a","artifact":"x"}`:                                                                                                   {400, "artifact is not"},
		`{"filename":"a","artifact":{"text":7}}`:                                                                                            {400, "artifact is not"},
		`{"filename":"a","artifact":{"inlineData":{"data":"***","mimeType":"a/b"}}}`:                                                        {400, "artifact is not"},
		`{"filename":"a","artifact":{"inlineData":{"data":"e30","displayName":7}}}`:                                                         {400, "artifact is not"},
		`{"filename":"a","artifact":{"functionCall":{"name":"f"}}}`:                                                                         {400, "no content"},
		`{"filename":"a","artifact":{"text":"x","fileData":{"fileUri":"gs://a"}}}`:                                                          {400, "more than one"},
		`{"filename":"a","artifact":{"fileData":{"fileUri":"artifact://apps/tickets/users/bob/artifacts/user:x/versions/0"}}}`:              {400, "reference"},
		`{"filename":"a/../../b","artifact":{"text":"x"}}`:                                                                                  {400, "a URL would lose"},
		`{"filename":"a/versions/0","artifact":{"text":"x"}}`:                                                                               {400, "which routes use"},
		`{"filename":"a\u0000","artifact":{"text":"x"}}`:                                                                                    {400, "control character"},
		`{"filename":"a","artifact":{"text":"x"},"customMetadata":[]}`:                                                                      {400, "customMetadata is not an object"},
		fmt.Sprintf(`{"filename":"a","artifact":{"text":"x"},"customMetadata":{"x":%q}}`, strings.Repeat("x", session.MaxArtifactMetadata)): {413, "custom metadata"},
	} {
		require.Contains(t, b.gives(c.status, "POST", artifacts, body), c.says, body)
	}
	b.store.LimitArtifacts(8 << 10)
	require.Contains(t, b.gives(http.StatusRequestEntityTooLarge, "POST", artifacts, `{"filename":"b","artifact":{"text":"`+strings.Repeat("x", 8<<10)+`"}}`), "delete some")
}

// What was uploaded is never a page, whatever it says it is.
func TestArtifactsAreNoPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.gives(200, "POST", sessions, `{"sessionId":"s1"}`)
	b.gives(200, "POST", artifacts, `{"filename":"a.html","artifact":{"inlineData":{"data":"PHNjcmlwdD4=","mimeType":"text/html"}}}`)
	b.gives(200, "POST", artifacts, `{"filename":"b.html","artifact":{"text":"<script>alert(1)</script>"}}`)
	for _, path := range []string{"", "/a.html", "/b.html", "/a.html/versions/0/metadata", "/%3Cscript%3E"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+artifacts+path, nil)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, "application/json", resp.Header.Get("Content-Type"), path)
		require.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"), path)
		require.Equal(t, "no-store", resp.Header.Get("Cache-Control"), path)
	}
}

func TestPatchMemory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.player("s1")
	p.Post("My cat is called Tom.", "chat")
	p.Take()
	const memory = "/apps/tickets/users/ann/memory"
	require.Equal(t, "null", b.gives(200, "PATCH", memory, `{"sessionId":"s1"}`))
	require.Equal(t, "null", b.gives(200, "PATCH", memory, `{"session_id":"s1","unknown":1}`))
	found, err := b.store.Recall(t.Context(), ann, "a cat")
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "My cat is called Tom.", found[0].Text)
	for body, want := range map[string]int{``: 400, `{}`: 400, `{"sessionId":null}`: 400, `{"sessionId":7}`: 400, `[]`: 400, `{"sessionId":"s9"}`: 404, `{"sessionId":"a/b"}`: 400} {
		b.gives(want, "PATCH", memory, body)
	}
	b.gives(404, "PATCH", "/apps/tickets/users/bob/memory", `{"sessionId":"s1"}`)
	b.gives(403, "PATCH", "/apps/tickets/users/eve/memory", `{"sessionId":"s1"}`)
}

// A file of the largest size goes in and comes out; a byte more does not.
func TestLargestArtifact(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.gives(200, "POST", sessions, `{"sessionId":"s1"}`)
	post := func(size int) string {
		data := strings.Repeat("QUFB", size/3) + []string{"", "QQ", "QUE"}[size%3]
		return `{"filename":"a","artifact":{"inlineData":{"data":"` + data + `","mimeType":""}}}`
	}
	b.gives(200, "POST", artifacts, post(session.MaxArtifact))
	b.gives(413, "POST", artifacts, post(session.MaxArtifact+1))
	require.Len(t, b.gives(200, "GET", artifacts+"/a", nil), len(`{"inlineData":{"data":""}}`)+(session.MaxArtifact+2)/3*4)
}
