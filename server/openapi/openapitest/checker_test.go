package openapitest_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/server/openapi/openapitest"
)

const (
	event = `{"id":"e1","invocationId":"e-1","author":"planner","timestamp":1.5,"actions":{"stateDelta":{},"artifactDelta":{},"requestedAuthConfigs":{},"requestedToolConfirmations":{}}`
	asked = event + `,"content":{"role":"model","parts":[{"functionCall":{"id":"r1","name":"adk_request_credential","args":{"functionCallId":"c1","authConfig":{"exchangedAuthCredential":{"authType":"oauth2","oauth2":{"authUri":"https://tarry.example/connect",`
	one   = "/apps/a/users/u/sessions/s"
)

// What does not fit is named by route, status and place; what fits is not.
func TestProblems(t *testing.T) {
	t.Parallel()
	c, err := openapitest.New()
	require.NoError(t, err)
	jsonType, stream := http.Header{"Content-Type": {"application/json"}}, http.Header{"Content-Type": {"text/event-stream"}}
	for name, tc := range map[string]struct {
		route  string
		sent   http.Header
		body   string
		status int
		got    http.Header
		answer string
		want   []string // a part of each problem
	}{
		"fits":                            {route: "GET /me", status: 200, got: jsonType, answer: `{"name":"Ann","mode":"jwt"}`},
		"status":                          {route: "GET /me", status: 418, got: jsonType, answer: `{}`, want: []string{"GET /me, 418: the status is not described"}},
		"content type":                    {route: "GET /me", status: 200, got: http.Header{"Content-Type": {"text/plain"}}, answer: `x`, want: []string{`GET /me, 200: the content type "text/plain"`}},
		"no JSON":                         {route: "GET /me", status: 200, got: jsonType, answer: `{`, want: []string{"GET /me, 200: body: no JSON"}},
		"missing field":                   {route: "GET /me", status: 200, got: jsonType, answer: `{"name":"Ann"}`, want: []string{"body: /: missing property 'mode'"}},
		"field that is not described":     {route: "GET " + one + "/status", status: 404, got: jsonType, answer: `{"error":"x","detail":"y"}`, want: []string{"GET /apps/{app}/users/{user}/sessions/{session}/status, 404: body: /detail: false schema"}},
		"value deep inside":               {route: "GET " + one + "/events", status: 200, got: jsonType, answer: `[` + event + `,"content":{"role":"robot"}}]`, want: []string{"body: /0/content/role: value must be one of"}},
		"secret in an answer":             {route: "GET " + one + "/events", status: 200, got: jsonType, answer: `[` + asked + `"authResponseUri":"https://x/?code=c"}}}}}}]}}]`, want: []string{"/0/content/parts/0/functionCall/args/authConfig/exchangedAuthCredential/oauth2/authResponseUri: false schema"}},
		"config that fits":                {route: "GET " + one + "/events", status: 200, got: jsonType, answer: `[` + asked + `"state":"s"}}}}}}]}}]`},
		"config without call":             {route: "GET " + one + "/events", status: 200, got: jsonType, answer: `[` + event + `,"content":{"role":"model","parts":[{"functionCall":{"id":"r1","name":"adk_request_credential","args":{}}}]}}]`, want: []string{"/0/content/parts/0/functionCall/args: missing properties 'functionCallId', 'authConfig'"}},
		"frame":                           {route: "POST /run_sse", status: 200, got: stream, answer: "id: 1\ndata: " + event + "}\n\n: beat\n\ndata: {\"err\":1}\n\n", want: []string{"frame 2 (message): "}},
		"frame of an unknown name":        {route: "GET " + one + "/events?follow=true", status: 200, got: stream, answer: "event: bye\ndata: {}\n\n", want: []string{`frame 0: the name "bye"`}},
		"frame that is cut off":           {route: "GET " + one + "/events?follow=true", status: 200, got: stream, answer: "data: " + event + "}\n\ndata: {\"id"},
		"header that is missing":          {route: "GET /me", status: 401, got: jsonType, answer: `{"error":"x"}`, want: []string{"GET /me, 401: the header WWW-Authenticate is missing"}},
		"header that is not described":    {route: "GET /me", status: 200, got: http.Header{"Content-Type": {"application/json"}, "Link": {"<x>"}}, answer: `{"name":"Ann","mode":"jwt"}`, want: []string{"GET /me, 200: the header Link is not described"}},
		"header of the wrong kind":        {route: "POST /connect", status: 429, got: http.Header{"Retry-After": {"soon"}}, want: []string{"header Retry-After: /: got string, want integer"}},
		"parameter that is not described": {route: "GET /runs?user=ann&sort=up", status: 200, got: jsonType, answer: `{"runs":[]}`, want: []string{"the query parameter sort"}},
		"parameter that is out of bounds": {route: "GET /runs?user=ann&limit=2000", status: 200, got: jsonType, answer: `{"runs":[]}`, want: []string{"parameter limit: /: maximum"}},
		"parameter that is missing":       {route: "GET /runs", status: 200, got: jsonType, answer: `{"runs":[]}`, want: []string{"without the parameter user"}},
		"parameter in a header":           {route: "GET " + one + "/events", sent: http.Header{"Last-Event-Id": {"x"}}, status: 200, got: jsonType, answer: `[]`, want: []string{"parameter Last-Event-ID: /: 'x' does not match pattern"}},
		"request":                         {route: "POST " + one + "/confirmations/r1", body: `{"confirmed":"yes"}`, status: 200, got: jsonType, answer: `{"request":"r1","status":"granted"}`, want: []string{"request: /confirmed: got string, want boolean"}},
		"request that was refused":        {route: "POST " + one + "/confirmations/r1", body: `{"confirmed":"yes"}`, status: 400, got: jsonType, answer: `{"error":"x"}`},
		"request without its body":        {route: "POST " + one + "/confirmations/r1", status: 200, got: jsonType, answer: `{"request":"r1","status":"granted"}`, want: []string{"without a body"}},
		"request of another type":         {route: "POST " + one + "/confirmations/r1", sent: http.Header{"Content-Type": {"text/xml"}}, body: `<a/>`, status: 200, got: jsonType, answer: `{"request":"r1","status":"granted"}`, want: []string{`a body of the type "text/xml"`}},
		"request with more fields":        {route: "POST /run", body: `{"app_name":"a","user_id":"u","session_id":"s","new_message":{"parts":[{"text":"hi"}]},"other":1}`, status: 200, got: jsonType, answer: `[]`},
		"request of ADK that is wrong":    {route: "POST /run", body: `{"app_name":"a","userId":"u","session_id":"s","new_message":{"parts":"hi"}}`, status: 200, got: jsonType, answer: `[]`, want: []string{"request: /newMessage"}},
		"form":                            {route: "POST /connect", sent: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, body: "request=r1", status: 303, got: http.Header{"Location": {"/"}}, want: []string{"form: /: missing property 'csrf'"}},
		"route that is nobody's":          {route: "GET /nothing", status: 418, answer: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			method, address, _ := strings.Cut(tc.route, " ")
			u, err := url.Parse(address)
			require.NoError(t, err)
			got := c.Problems(openapitest.Exchange{Method: method, URL: u, Sent: tc.sent, Request: []byte(tc.body), Read: true, Status: tc.status, Got: tc.got, Answer: []byte(tc.answer)})
			if tc.want == nil {
				require.Empty(t, got)
				return
			}
			for _, part := range tc.want {
				require.Contains(t, strings.Join(got, "\n"), part)
			}
		})
	}
}
