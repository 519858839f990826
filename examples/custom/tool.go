package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"tarry/auth"
	"tarry/tools"
)

const credentialKey = "reports"

// reports is the client of the service. Its method is the tool; it is safe for concurrent use.
type reports struct {
	url  string
	http *http.Client
}

type wanted struct {
	Title string `json:"title" jsonschema:"title of the report"`
}

type report struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

// read returns the error of auth.Token as it is: where nobody has logged in yet, the run waits for the person, and calls
// the tool again with the same call id.
func (r *reports) read(ctx context.Context, call tools.Call, in wanted) (report, error) {
	for range 2 {
		token, err := auth.Token(ctx, credentialKey)
		if err != nil {
			return report{}, err
		}
		out, status, err := r.get(ctx, call, in, token)
		switch {
		case err != nil:
			return report{}, fmt.Errorf("read report: %w: %w", tools.ErrUnknown, err) // idempotent: it is tried again
		case status == http.StatusOK:
			return out, nil
		case status != http.StatusUnauthorized:
			return report{}, tools.Errorf("the service answered %d", status)
		}
		if err := auth.Refused(ctx, credentialKey, token); err != nil { // nil: a fresh token is there
			return report{}, err
		}
	}
	return report{}, tools.Errorf("the service does not accept the login")
}

func (r *reports) get(ctx context.Context, call tools.Call, in wanted, token auth.AccessToken) (out report, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/reports/"+url.PathEscape(in.Title), nil)
	if err != nil {
		return out, 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token.Access.Reveal())
	req.Header.Set("Idempotency-Key", call.ID)
	resp, err := r.http.Do(req)
	if err != nil {
		return out, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		err = json.NewDecoder(resp.Body).Decode(&out)
	}
	return out, resp.StatusCode, err
}
