package activities

import (
	"encoding/json"
	"strconv"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/session"
	"tarry/wire"
)

// told answers a call at once, without running anything.
type told struct {
	response map[string]any
	transfer string
}

// calls is the addition of an event that makes calls, with the responses to those that are answered at once.
func (t *attempt) calls(turn turn, kind session.Kind, parents []string, e session.Event) session.Append {
	var rows []session.Call
	var answers []session.NewEvent
	for i, call := range e.Calls() {
		call.ID = t.callID(wire.RoleCall + "/" + strconv.Itoa(i))
		row, answer := route(t, turn, &e, call)
		if answer != nil {
			told := response(t.id(wire.RoleAnswer+"/"+strconv.Itoa(i)), turn.invocation, e.Author, call.ID, call.Name, []string{e.ID}, answer.response)
			told.Actions.TransferToAgent = answer.transfer
			row.Answer = told.ID
			answers = append(answers, told)
		} else if turn.tools[call.Name].longRunning {
			e.LongRunningToolIDs = append(e.LongRunningToolIDs, call.ID)
		}
		rows = append(rows, row)
	}
	add := t.append(append([]session.NewEvent{{Kind: kind, Parents: parents, Event: e}}, answers...)...)
	add.Calls, add.Answers = rows, map[string]string{}
	return add
}

// route says where one call of a model's answer goes: to a tool, to an agent, or nowhere, for which it is told why.
func route(t *attempt, turn turn, e *session.Event, call *genai.FunctionCall) (session.Call, *told) {
	if agent.Reserved(call.Name) && (call.Name != agent.TransferToAgent || turn.tools[call.Name].toolset == "") {
		// Clients show a call of such a name as a question of ours, with whatever link the model put into it.
		call.Name = "refused_" + call.Name
	}
	row := session.Call{ID: call.ID, Invocation: turn.invocation, Event: e.ID, Agent: e.Author, Name: call.Name}
	if call.Args == nil {
		call.Args = map[string]any{}
	}
	row.Args = encode(call.Args)
	tool, ok := turn.tools[call.Name]
	switch {
	case !ok:
		return row, &told{response: map[string]any{"error": "There is no tool " + strconv.Quote(call.Name) + ". " + turn.names()}}
	case tool.toolset == "":
		return row, &told{response: turn.output.refuse(call, len(e.Calls()) == 1)}
	case tool.toolset == toolsetTransfer:
		answer := transfer(t.def, e.Author, call)
		if answer.transfer != "" {
			row.Toolset = toolsetTransfer
		}
		return row, answer
	case tool.toolset == wire.ToolsetAgent:
		if err := checkRequest(t.def.Find(tool.name), call.Args); err != nil {
			return row, &told{response: map[string]any{"error": err.Error()}}
		}
	}
	row.Toolset, row.Name, row.Idempotent = tool.toolset, tool.name, tool.declaration.Idempotent
	return row, nil
}

// wireCall is what a workflow needs to know of a call.
func wireCall(row session.Call) wire.Call {
	c := wire.Call{ID: row.ID}
	switch row.Toolset {
	case "":
		c.Answer = row.Answer
	case toolsetTransfer:
		c.Answer, c.Transfer = row.Answer, target(row.Args)
	case wire.ToolsetAgent:
		c.Agent = row.Name
	default:
		c.Tool = wire.ToolActivity(row.Toolset, row.Name)[len(wire.ToolPrefix):]
	}
	return c
}

// target is whom a call hands over to, by the very key that was checked: a struct would take any spelling of it.
func target(args json.RawMessage) string {
	var a map[string]any
	if json.Unmarshal(args, &a) != nil {
		return ""
	}
	name, _ := a["agent_name"].(string)
	return name
}
