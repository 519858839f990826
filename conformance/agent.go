package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// given is what a scenario gives its client to know.
type given struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	Issuer       string `json:"issuer"`
	ToolCalls    []struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
	} `json:"toolCalls"`
}

type object = map[string]any

// writeAgent writes the agent of a scenario, the script of its model, and the secret that the agent refers to. All are
// JSON, which YAML contains.
func writeAgent(s settings, address string, g given) error {
	args := object{"streamable_http_connection_params": object{"url": address}}
	own := object{}
	if g.ClientID != "" {
		file := s.member
		args["auth_credential"] = object{"auth_type": "oauth2", "oauth2": object{
			"client_id": g.ClientID, "client_secret": "${file:" + file + "}",
		}}
		own["issuer"] = g.Issuer
		if err := write(filepath.Join(s.dir, "secrets", file), []byte(g.ClientSecret)); err != nil {
			return err
		}
	}
	switch {
	case s.scenario == "elicitation-sep1034-client-defaults":
		own["accept_defaults"] = true
	case strings.HasPrefix(s.scenario, "auth/"+oldest):
		own["legacy_authorization"] = true
	}
	if len(own) > 0 {
		args["tarry"] = own
	}
	agent := object{
		"name": s.member, "model": "scripted/" + s.member, "instruction": "Call the tools.",
		"tools": []object{{"name": "McpToolset", "args": args}},
	}
	if err := writeJSON(filepath.Join(s.dir, "agents", s.member, "root_agent.yaml"), agent); err != nil {
		return err
	}
	steps := []object{}
	for _, calls := range script(s.scenario, g) {
		steps = append(steps, object{"calls": calls})
	}
	steps = append(steps, object{"text": "Done."})
	return writeJSON(filepath.Join(s.dir, "scripts", s.member+".yaml"), object{"agents": []object{{"agent": s.member, "steps": steps}}})
}

// script lists what the model calls: for each of its answers the calls in it. A scenario that is not named here is about
// what happens before any call.
func script(name string, g given) [][]object {
	one := func(tool string, args object) []object { return []object{{"name": tool, "args": args}} }
	switch name {
	case "tools_call":
		return [][]object{one("add_numbers", object{"a": 5, "b": 3})}
	case "elicitation-sep1034-client-defaults":
		return [][]object{one("test_client_elicitation_defaults", object{})}
	case "sse-retry":
		return [][]object{one("test_reconnection", object{})}
	case "sep-2322-client-request-state":
		// All at once: what one call is asked must not reach another.
		var all []object
		for _, tool := range []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"} {
			all = append(all, one(tool, object{})...)
		}
		return [][]object{all}
	case "http-standard-headers":
		return [][]object{one("test_headers", object{}), one("my-hyphenated-tool", object{})}
	case "http-invalid-tool-headers":
		// The invalid ones must not be callable, also when the model tries.
		var all []object
		for _, tool := range []string{
			"valid_tool", "invalid_empty_header", "invalid_object_header", "invalid_array_header", "invalid_null_header",
			"invalid_duplicate_same_case", "invalid_duplicate_diff_case", "invalid_space_in_name", "invalid_colon_in_name",
			"invalid_non_ascii_name", "invalid_control_char_name",
		} {
			all = append(all, one(tool, object{"region": "us-west1"})...)
		}
		return [][]object{all}
	case "http-custom-headers":
		var calls [][]object
		for _, c := range g.ToolCalls {
			calls = append(calls, one(c.Name, c.Arguments))
		}
		return calls
	}
	if strings.HasPrefix(name, "auth/") {
		return [][]object{one("test-tool", object{})}
	}
	return nil
}

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	return write(path, append(text, '\n'))
}

func write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}
