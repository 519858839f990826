package e2e_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
)

// agentCLIs are the example of a client of ADK in both languages, as command lines.
func agentCLIs(t *testing.T) map[string][]string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "agent_cli")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../examples/agent_cli")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	all := map[string][]string{"go": {binary}}
	python, err := exec.LookPath("python3")
	if err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "python3 is missing")
		t.Log("python3 is missing: only the program in Go is tested")
		return all
	}
	all["python"] = []string{python, "../examples/agent_cli/agent_cli.py"}
	return all
}

// agentCLI is one that runs against a world.
type agentCLI struct {
	w *world
	*demo.Terminal
}

func (w *world) agentCLI(line []string, args ...string) agentCLI {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	terminal, err := demo.RunInTerminal(ctx, []string{"HOME=" + w.dir, "PYTHONDONTWRITEBYTECODE=1"}, slices.Concat(line, []string{"--server", w.URL()}, args)...)
	require.NoError(w.t, err)
	w.t.Cleanup(terminal.Kill)
	return agentCLI{w, terminal}
}

func (c agentCLI) waitFor(text string) {
	c.w.t.Helper()
	require.NoError(c.w.t, c.Await(c.w.t.Context(), text))
}

func (c agentCLI) enter(lines ...string) {
	c.w.t.Helper()
	require.NoError(c.w.t, c.Enter(lines...))
}

var (
	shownLink    = regexp.MustCompile(`Log in here:\n  (\S+)`)
	shownSession = regexp.MustCompile(`\(session (\S+)\)`)
)

func (c agentCLI) link() string {
	c.w.t.Helper()
	c.waitFor("Log in here:")
	c.w.eventually("no link is shown", func() bool { return shownLink.MatchString(c.Shown()) })
	return shownLink.FindStringSubmatch(c.Shown())[1]
}

func (c agentCLI) session() string {
	c.w.t.Helper()
	c.waitFor("(session ")
	return shownSession.FindStringSubmatch(c.Shown())[1]
}

// loginBack logs in and returns the address to which the browser is sent back, and which nobody serves.
func (w *world) loginBack(link, back string) string {
	w.t.Helper()
	b := demo.NewBrowser()
	b.StopAt = func(u *url.URL) bool { return strings.HasPrefix(u.String(), back) }
	page, err := b.Login(w.t.Context(), link, "alice", "alice-password")
	require.NoError(w.t, err)
	require.True(w.t, strings.HasPrefix(page.URL.String(), back+"?"), page.Text)
	return page.URL.String()
}

// The documented flow of ADK's client: it shows the link, and everything is killed while it waits, itself included. Started
// again with its session it shows the same link; the person logs in while the server is down again when Enter is pressed, and
// the answer comes.
func TestAgentCLILogsIn(t *testing.T) {
	t.Parallel()
	const back = "http://client.example/back"
	o := single(call("list_tickets") + text("Four tickets."))
	o.env = append(o.env, "TARRY_RETURN_URLS="+back)
	w := newWorld(t, o)
	for name, line := range agentCLIs(t) {
		args := []string{"--app", "assistant", "--user", name, "--redirect", back}
		c := w.agentCLI(line, slices.Concat(args, []string{"Which tickets?"})...)
		link, session := c.link(), c.session()
		require.NoError(t, w.Kill(stack.Server, stack.Worker))
		c.Kill()
		require.NoError(t, w.Start(t.Context(), stack.Server, stack.Worker))

		c = w.agentCLI(line, slices.Concat(args, []string{"--session", session})...)
		require.Equal(t, link, c.link())
		require.Contains(t, c.Shown(), "user: Which tickets?")
		address := w.loginBack(link, back)
		require.NoError(t, w.Kill(stack.Server, stack.Worker))
		c.enter(address)
		c.waitFor("(the server is out of reach; trying again)")
		require.NoError(t, w.Start(t.Context(), stack.Server, stack.Worker))
		c.waitFor("assistant: Four tickets.")
		require.Zero(t, c.End(), c.Shown())
		require.Equal(t, 1, strings.Count(c.Shown(), "Log in here:"))
		require.Equal(t, 1, strings.Count(c.Shown(), "list_tickets answers"))

		// Once more, when all is over: it is shown, and nothing is asked.
		c = w.agentCLI(line, slices.Concat(args, []string{"--session", session})...)
		require.Zero(t, c.End(), c.Shown())
		require.NotContains(t, c.Shown(), "Log in here:")
		require.Equal(t, 1, strings.Count(c.Shown(), "assistant: Four tickets."))
		r := runHandle{w.api, "assistant", name, session}
		require.Len(t, r.events(), 5)
		w.checkAnswers(r.events(), name)
	}
	require.Equal(t, len(agentCLIs(t)), w.provider.Counts().Token["authorization_code"])
}

// The stream breaks while a tool runs, and is taken up again when the server is back: nothing is posted or shown twice.
func TestAgentCLIReconnects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single("- when: {contains: Slowly}\n  calls: [{name: slow, args: {}}]\n- when: {last_tool: slow}\n  text: slow is done\n"+call("list_tickets")+text("Four tickets.")))
	for name, line := range agentCLIs(t) {
		args := []string{"--app", "assistant", "--user", name}
		first := w.agentCLI(line, slices.Concat(args, []string{"Go."})...)
		w.login(first.link())
		first.enter("")
		require.Zero(t, first.End(), first.Shown())

		gate := w.mcp.HoldSlow()
		c := w.agentCLI(line, slices.Concat(args, []string{"--session", first.session(), "Slowly."})...)
		<-gate.Arrived()
		c.waitFor("assistant calls slow")
		require.NoError(t, w.Kill(stack.Server))
		c.waitFor("(the server is out of reach; trying again)")
		require.NoError(t, w.Start(t.Context(), stack.Server))
		gate.Open()
		c.waitFor("assistant: slow is done")
		require.Zero(t, c.End(), c.Shown())
		require.Equal(t, 1, strings.Count(c.Shown(), "assistant calls slow"))
		var said []string
		for _, e := range (runHandle{w.api, "assistant", name, first.session()}).events() {
			if e.Author == "user" {
				said = append(said, e.Content.Parts[0].Text)
			}
		}
		require.Equal(t, []string{"Go.", "Slowly."}, said, "nothing is posted twice")
	}
}

// A denial, and everything else that agents wait for: an approval and a refusal, a question, a long-running call's result.
func TestAgentCLIAnswers(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	for name, line := range agentCLIs(t) {
		run := func(app string) agentCLI { return m.agentCLI(line, "--app", app, "--user", name, "Go on.") }
		c := run("llm_credential")
		b := demo.NewBrowser()
		_, err := b.Deny(t.Context(), c.link(), "alice", "alice-password")
		require.NoError(t, err)
		c.enter("")
		c.waitFor("asker got {")
		require.Zero(t, c.End(), c.Shown())
		require.Contains(t, c.Shown(), "did not allow the login")

		for app, steps := range map[string][][2]string{
			"sequential_confirmation": {{`Run pay {"amount":`, "y"}, {"paid 3", ""}},
			"llm_confirmation":        {{`Run pay {"amount":`, "no"}, {"rejected", ""}},
			"llm_input":               {{"How many? >", "12"}, {"asker got", ""}},
			"llm_long_running":        {{"Result of job", `{"status":"done"}`}, {"asker got", ""}},
		} {
			c := run(app)
			for _, step := range steps {
				c.waitFor(step[0])
				if step[1] != "" {
					c.enter(step[1])
				}
			}
			require.Zero(t, c.End(), "%s: %s", app, c.Shown())
		}
	}
}
