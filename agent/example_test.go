package agent_test

import (
	"fmt"

	"tarry/agent"
)

func ExampleDefinition_Validate() {
	def := &agent.Definition{App: "stories", Root: &agent.Agent{
		Name: "improve", Kind: agent.KindLoop, MaxIterations: 3,
		SubAgents: []*agent.Agent{
			{Name: "writer", Kind: agent.KindLLM, Model: "gemini/gemini-2.5-flash", OutputKey: "story"},
			{Name: "critic", Kind: agent.KindLLM, Tools: []agent.Tool{{Builtin: agent.ExitLoop}}},
		},
	}}
	fmt.Println(def.Validate())
	// Output: agent "critic": model: missing; set it here or on a parent, for example gemini-2.5-flash
}

func ExampleDefinition_Plan() {
	def := &agent.Definition{App: "stories", Root: &agent.Agent{
		Name: "writer", Kind: agent.KindLLM, Model: "gemini/gemini-2.5-flash", Instruction: "Write a story.",
	}}
	fmt.Printf("%+v\n", def.Plan().Root)
	// Output: {Name:writer Kind:LlmAgent MaxIterations:0 Children:[] Toolsets:[] Deadline:0s OnDeadline: Remind:0s Escalates:false Custom: AgentTools:[] Before:false After:false ToolCallbacks:false}
}

func ExampleDefinition_Hash() {
	def := &agent.Definition{App: "stories", Root: &agent.Agent{Name: "writer", Kind: agent.KindLLM}}
	before, err := def.Hash()
	if err != nil {
		fmt.Println(err)
		return
	}
	def.Root.Instruction = "Write a story."
	after, err := def.Hash()
	fmt.Println(len(before), before == after, err)
	// Output: 32 false <nil>
}

func ExampleDefinition_All() {
	def := &agent.Definition{App: "stories", Root: &agent.Agent{
		Name: "story", Kind: agent.KindSequential,
		SubAgents: []*agent.Agent{{Name: "writer"}, {Name: "critic"}},
	}}
	for a := range def.All() {
		fmt.Println(a.Name)
	}
	// Output:
	// story
	// writer
	// critic
}

func ExampleRender() {
	state := map[string]string{"plan": "1. test, 2. ship"}
	lookup := func(key string) (string, bool) { v, ok := state[key]; return v, ok }
	fmt.Println(agent.Render("Review {plan}. {remarks?}", lookup))
	fmt.Println(agent.Render("Review {remarks}.", lookup))
	// Output:
	// Review 1. test, 2. ship.  <nil>
	//  instruction names {remarks}, which is not in the session's state; write {remarks?} where it may be missing
}

func ExampleTemplateKeys() {
	fmt.Println(agent.TemplateKeys("Review {plan} for {user:name?}."))
	// Output: [plan user:name]
}

func ExampleSecretTemplate_Expand() {
	header := agent.SecretTemplate("Bearer ${env:TARRY_SECRET_TICKETS}")
	value, err := header.Expand(func(s agent.Source) (string, error) {
		return "value of " + s.Kind + " " + s.Name, nil
	})
	fmt.Println(value, err)
	// Output: Bearer value of env TARRY_SECRET_TICKETS <nil>
}

func ExampleSecretRef_Parse() {
	fmt.Println(agent.SecretRef("${file:tickets/client}").Parse())
	_, err := agent.SecretRef("s3cr3t").Parse()
	fmt.Println(err)
	// Output:
	// {file tickets/client} <nil>
	// secret must be a reference such as ${env:TARRY_SECRET_NAME} or ${file:NAME}, not a literal
}

func ExampleOwner_Validate() {
	fmt.Println(agent.Owner{App: "stories", User: "ada"}.Validate())
	fmt.Println(agent.Owner{App: "stories"}.Validate())
	// Output:
	// <nil>
	// invalid owner: user id is empty
}

func ExampleCheckID() {
	fmt.Println(agent.CheckID("session", "a/b"))
	// Output: session id "a/b" contains a slash, a control character or invalid UTF-8
}

func ExampleReserved() {
	fmt.Println(agent.Reserved("adk_request_credential"), agent.Reserved("list_tickets"))
	// Output: true false
}
