package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tarry/agent"
	"tarry/tools"
)

// Bounds of a listing. A server that goes past them is refused, not cut: which tools an agent has must not depend on the
// order in which a server lists them.
const (
	maxTools       = 512
	maxPages       = 256
	maxListing     = 1 << 20
	maxDescription = 4 << 10
)

// list returns the selected tools of all pages, sorted by name.
func list(ctx context.Context, s *session, def *agent.MCPToolset, log *slog.Logger) ([]tools.Declaration, error) {
	var out []tools.Declaration
	size, cursor := 0, ""
	for page := 0; ; page++ {
		if page == maxPages {
			return nil, tools.Errorf("toolset %s lists its tools on more than %d pages", def.Name, maxPages)
		}
		res, err := s.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		for _, tool := range res.Tools {
			d, err := declare(def, tool)
			if err != nil {
				log.WarnContext(ctx, "mcp tool is left out", "toolset", def.Name, "tool", cut(tool.Name, 128), "err", err)
				continue
			}
			if d == nil || slices.ContainsFunc(out, func(o tools.Declaration) bool { return o.Name == d.Name }) {
				continue
			}
			size += len(d.Name) + len(d.Description) + len(d.Parameters) + len(d.Response)
			out = append(out, *d)
			if len(out) > maxTools || size > maxListing {
				return nil, tools.Errorf("toolset %s lists more than %d tools or %d bytes; select some with tool_filter", def.Name, maxTools, maxListing)
			}
		}
		if res.NextCursor == "" {
			break
		}
		cursor = res.NextCursor
	}
	slices.SortFunc(out, func(a, b tools.Declaration) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// declare returns nil for a tool that was not selected.
func declare(def *agent.MCPToolset, tool *sdk.Tool) (*tools.Declaration, error) {
	if !selected(def, tool.Name) {
		return nil, nil //nolint:nilnil // not selected is no error
	}
	name := tool.Name
	if def.NamePrefix != "" {
		name = def.NamePrefix + "_" + name
	}
	// A name becomes part of activity types and logs.
	if !regexp.MustCompile(`^[A-Za-z0-9_./-]{1,128}$`).MatchString(name) {
		return nil, fmt.Errorf("its name is longer than 128 or has other characters than letters, digits and _ . / -")
	}
	// The model sees what stands behind the last dot. A server's exit_loop would take the place of the one that ends a loop.
	if public := name[strings.LastIndex(name, ".")+1:]; agent.Reserved(public) || agent.Reserved(tool.Name) || public == agent.ExitLoop {
		return nil, fmt.Errorf("its name is reserved")
	}
	d := &tools.Declaration{Name: name, Description: cut(tool.Description, maxDescription)}
	var err error
	if d.Parameters, err = schema(tool.InputSchema); err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	if d.Response, err = schema(tool.OutputSchema); err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	if tool.Annotations != nil {
		d.Idempotent = tool.Annotations.ReadOnlyHint || tool.Annotations.IdempotentHint
	}
	return d, nil
}

func selected(def *agent.MCPToolset, name string) bool {
	return len(def.Filter) == 0 || slices.Contains(def.Filter, name)
}

func schema(s any) (json.RawMessage, error) {
	if s == nil {
		return nil, nil
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return raw, nil
}
