// Package scripted is a model that follows a script: for the demo, for examples without a key, and for tests.
//
// It owns the script's format. It must not remember anything between calls: an answer follows from the request alone
// (the agent's name and the contents), so that another process, after a crash, gives the answer that this one would
// have given, and a retry gets the same answer again. Wiring registers its [Factory] under the prefix "scripted";
// tests use [New] and [Func].
//
// # Which step answers
//
// A step with "when" is a rule; the first rule of the agent whose conditions all hold answers. If none does, the steps
// without "when" count: the n-th of them answers turn n. The turn is 1 plus the number of contents with the role
// "model" after the latest text of the person; what ADK shows of other agents ("For context: …") is not such a text, so
// the turns of an agent in a loop go on counting through the iterations of one invocation. An agent that is told to
// see no earlier contents (include_contents: none) counts those of its current turn only.
//
// # Script file
//
//	agents:
//	  - agent: planner              # Request.Agent; "*" is any agent that has no entry of its own
//	    steps:
//	      - calls:                  # one call, or several in parallel
//	          - name: list_tickets
//	            args: {status: open}
//	      - calls:
//	          - name: get_ticket
//	            args: {id: "{{last_response.tickets.0.id}}"}
//	      - text: "The ticket is {{last_response.title}}."
//	      - when: {contains: "again"}
//	        text: Once more.
//
// Fields of a step: id, when (turn, last_tool, contains, instruction), text, thought, calls (name, args, id), usage
// (prompt, output, thoughts), delay ("200ms"), error (status, retry_after). Conditions: turn is a number from 1;
// last_tool is the name of a function whose response has arrived since the agent's last turn; contains is a text in
// what has arrived since then, responses included, in any case of letters; instruction is a text in the system
// instruction. "when: {}" always holds.
//
// Placeholders in text and args: {{last_response.path}} is a value in the latest function response,
// {{response.<tool>.path}} one in the latest response of that tool, {{user_text}} the person's latest text. A path is
// made of field names and list positions from 0. Where a response wraps its value (structuredContent, result, output,
// or JSON in content.0.text, as MCP tools give it), the path is looked up inside as well. A string that is nothing but
// one placeholder keeps the value's type.
package scripted
