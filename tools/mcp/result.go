package mcp

import (
	"encoding/json"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tarry/tools"
)

// result has the shape of ADK's: the CallToolResult as it is, with isError always there and the metadata as "meta".
func result(what string, res *sdk.CallToolResult) (tools.Result, error) {
	raw, err := json.Marshal(res)
	if err != nil {
		return tools.Result{}, &tools.Error{Message: what + ": its result cannot be shown", Cause: fmt.Errorf("encode result: %w", err)}
	}
	var response map[string]any
	if err := json.Unmarshal(raw, &response); err != nil {
		return tools.Result{}, &tools.Error{Message: what + ": its result cannot be shown", Cause: fmt.Errorf("encode result: %w", err)}
	}
	response["isError"] = res.IsError
	if meta, ok := response["_meta"]; ok {
		response["meta"] = meta
	}
	delete(response, "_meta")
	delete(response, "resultType")
	return tools.Result{Response: response}, nil
}
