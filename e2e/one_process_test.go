package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/genai"

	"tarry/activities"
	"tarry/agent"
	"tarry/agent/yaml"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/internal/demo"
	"tarry/internal/wiring"
	"tarry/models"
	"tarry/outbox"
	"tarry/session"
	"tarry/tarrytest"
	"tarry/tools"
	"tarry/tools/mcp"
	"tarry/wire"
	"tarry/workflows"
)

// oneProcess is Tarry without Temporal's server, without HTTP and without a process of its own, for what must be done a
// thousand times: workflow, activities, store, login service, outbox, MCP client, provider and MCP server are the real
// ones; workflows run in the SDK's test environment.
type oneProcess struct {
	t        *testing.T
	database string
	parts    *wiring.Parts
	provider *demo.Provider
	mcp      *demo.MCPServer
	def      *agent.Definition
	hash     string
	acts     *activities.Activities
	outbox   *outbox.Dispatcher
	// at is called where a run reaches a point: those of the fault points, and "waits" when it has said that it waits.
	at func(ctx context.Context, workflowID, point string)
	// patience is how long a run may wait.
	patience time.Duration

	mu   sync.Mutex
	envs map[string]*testsuite.TestWorkflowEnvironment
}

func newOneProcess(t *testing.T) *oneProcess {
	t.Helper()
	p := &oneProcess{t: t, patience: patience, envs: map[string]*testsuite.TestWorkflowEnvironment{}, at: func(context.Context, string, string) {}}
	var err error
	p.provider, err = demo.NewProvider(demo.ProviderConfig{Faults: demo.Faults{AutoApprove: "alice"}})
	require.NoError(t, err)
	require.NoError(t, p.provider.Start(""))
	t.Cleanup(func() { require.NoError(t, p.provider.Close()) })
	p.mcp, err = demo.NewMCPServer(demo.MCPConfig{Provider: p.provider})
	require.NoError(t, err)
	p.mcp.SetSwitches(func(s *demo.MCPSwitches) { s.OpenListing = true })
	require.NoError(t, p.mcp.Start(""))
	t.Cleanup(func() { require.NoError(t, p.mcp.Close()) })

	dir := t.TempDir()
	p.database = filepath.Join(dir, "tarry.db")
	public, err := url.Parse("http://127.0.0.1:8080")
	require.NoError(t, err)
	quiet := slog.New(slog.DiscardHandler)
	p.parts, err = wiring.Open(t.Context(), wiring.Config{
		DatabaseURL: auth.NewSecret(p.database), DataDir: dir, LookupEnv: os.LookupEnv, PublicURL: public, Dev: true, Log: quiet,
		Wake: func() { p.outbox.Wake() },
	})
	require.NoError(t, err)
	p.outbox = outbox.New(p.parts.Store, p.deliver, quiet, 100*time.Millisecond)
	dispatching, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var group sync.WaitGroup
	group.Go(func() { p.outbox.Run(dispatching) })
	t.Cleanup(func() {
		stop()
		group.Wait()
		require.NoError(t, p.parts.Close())
	})
	p.load(dir)
	p.build(quiet)
	return p
}

func (p *oneProcess) load(dir string) {
	p.t.Helper()
	agents := filepath.Join(dir, "agents", "assistant")
	require.NoError(p.t, os.MkdirAll(agents, 0o700))
	require.NoError(p.t, os.WriteFile(filepath.Join(agents, "root_agent.yaml"), []byte(assistant("")), 0o600))
	all, err := yaml.Load(filepath.Join(dir, "agents"), yaml.Options{Vars: map[string]string{"MODEL": "scripted/script", "MCP_URL": p.mcp.URL()}})
	require.NoError(p.t, err)
	require.Len(p.t, all, 1)
	p.def = all[0]
	p.hash, err = p.def.Hash()
	require.NoError(p.t, err)
	require.NoError(p.t, p.parts.Store.Publish(p.t.Context(), p.def))
}

func (p *oneProcess) build(quiet *slog.Logger) {
	p.t.Helper()
	toolsets, err := mcp.New(mcp.Config{HTTP: p.parts.HTTP.Streaming()})
	require.NoError(p.t, err)
	p.t.Cleanup(func() { require.NoError(p.t, toolsets.Close()) })
	registry := models.NewRegistry()
	require.NoError(p.t, registry.Register("scripted", tarrytest.NewModel(tarrytest.Calls("list_tickets", nil), tarrytest.Says("ok")).Factory()))
	none, err := tools.NewRegistry()
	require.NoError(p.t, err)
	p.acts, err = activities.New(activities.Config{
		Log: announced{p.parts.Store, p}, Definitions: p.parts.Store, Listings: p.parts.Store, Requests: p.parts.Store,
		Artifacts: p.parts.Store, Memory: p.parts.Store, Models: registry, Functions: none, Builtins: none, Toolsets: toolsets,
		Broker: func(owner agent.Owner, use activities.Use, scrub *auth.Scrubber) auth.Broker {
			return p.parts.Logins.Broker(owner, oauth.Use(use), scrub)
		},
		Link: func(r auth.Request) string { return r.Link("http://127.0.0.1:8080") },
		Now:  time.Now, Slog: quiet,
		Fault: func(ctx context.Context, point string) { p.at(ctx, activity.GetInfo(ctx).WorkflowExecution.ID, point) },
	})
	require.NoError(p.t, err)
}

// announced says when a run has written down that it waits.
type announced struct {
	session.Log
	p *oneProcess
}

func (a announced) SetStatus(ctx context.Context, row session.Session, run, status string) error {
	err := a.Log.SetStatus(ctx, row, run, status)
	if err == nil && status == string(wire.StateWaitingCredential) {
		a.p.at(ctx, row.WorkflowID, "waits")
	}
	return err
}

func (p *oneProcess) deliver(_ context.Context, m outbox.Message) error {
	p.mu.Lock()
	env := p.envs[m.WorkflowID]
	p.mu.Unlock()
	switch {
	case m.Signal == wire.SignalMessage: // by run itself
		return nil
	case env == nil:
		return outbox.ErrGone
	}
	var payload wire.Resolved
	if err := json.Unmarshal(m.Payload, &payload); err != nil {
		return err
	}
	env.SignalWorkflow(m.Signal, payload)
	return nil
}

// run is a job of user from its message to its end, and returns how it ended. id is new.
func (p *oneProcess) run(user, id string) (status string, err error) {
	ctx, owner := p.t.Context(), agent.Owner{App: "assistant", User: user}
	row := session.Session{Owner: owner, ID: id, WorkflowID: id, Mode: string(wire.ModeJob)}
	message := session.Message{ID: "inbox-" + id, Invocation: "invocation-" + id, Event: session.Event{Content: genai.NewContentFromText("Go.", genai.RoleUser)}}
	if err := errors.Join(p.parts.Store.Create(ctx, row), p.parts.Store.Post(ctx, owner, id, p.hash, row.Mode, message)); err != nil {
		return "", err
	}
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: id})
	env.SetTestTimeout(p.patience)
	env.SetWorkerOptions(worker.Options{
		Interceptors:             []interceptor.WorkerInterceptor{&ownRun{}},
		DeadlockDetectionTimeout: p.patience, // hundreds of runs share the machine with all other tests: one may get no turn for a second
	})
	env.RegisterWorkflowWithOptions(workflows.Agents(nil).Session, workflow.RegisterOptions{Name: wire.WorkflowSession})
	p.acts.Register(env)
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(wire.SignalMessage, wire.Message{Inbox: message.ID}) }, 0)
	// While a run waits, the environment's clock would jump to the end of the run's time; this makes it go as ours does, for
	// as long as we wait.
	const beat = 20 * time.Millisecond
	var tick func()
	give := time.Now().Add(p.patience)
	tick = func() {
		<-time.After(beat)
		if time.Now().Before(give) {
			env.RegisterDelayedCallback(tick, beat)
		}
	}
	env.RegisterDelayedCallback(tick, beat)
	p.mu.Lock()
	p.envs[id] = env
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.envs, id)
		p.mu.Unlock()
		if found := recover(); found != nil { // how the test environment says that something takes too long
			err = fmt.Errorf("run %s: %v", id, found)
		}
	}()
	env.ExecuteWorkflow(wire.WorkflowSession, wire.SessionInput{Definition: p.hash, Plan: p.def.Plan(), Mode: wire.ModeJob})
	if err := env.GetWorkflowError(); err != nil {
		return "", err
	}
	done, err := p.parts.Store.Invocation(ctx, owner, message.Invocation)
	return done.Status, err
}

// login answers the oldest open request of a user as browser, provider and callback do together.
func (p *oneProcess) login(user string) error {
	ctx, owner := p.t.Context(), agent.Owner{App: "assistant", User: user}
	open, err := p.parts.Store.Requests(ctx, owner, true, 10)
	if err != nil {
		return err
	}
	if len(open) == 0 {
		return errors.New("no open request of " + user)
	}
	request := open[len(open)-1].ID
	access := func(o agent.Owner) bool { return o == owner }
	begun, err := p.parts.Logins.Begin(ctx, access, request, "")
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, begun.RedirectURL, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		return err
	}
	q := back.Query()
	out, err := p.parts.Logins.Complete(ctx, access, oauth.Callback{
		Digest: back.Path[strings.LastIndex(back.Path, "/")+1:], State: q.Get("state"), Code: q.Get("code"), Iss: q.Get("iss"), IssPresent: q.Has("iss"),
		Cookies: func(name string) string {
			if name != begun.CookieName {
				return ""
			}
			return begun.Cookie.Reveal()
		},
	})
	if err == nil && out.Outcome != auth.StatusGranted {
		err = fmt.Errorf("login of %s: %s", user, out.Outcome)
	}
	return err
}

// ownRun gives each workflow a run id of its own, of which the ids of events are made; the test environment has one for all.
type ownRun struct {
	interceptor.WorkerInterceptorBase
}

func (*ownRun) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &ownRunInbound{interceptor.ActivityInboundInterceptorBase{Next: next}}
}

type ownRunInbound struct {
	interceptor.ActivityInboundInterceptorBase
}

func (i *ownRunInbound) Init(outbound interceptor.ActivityOutboundInterceptor) error {
	return i.Next.Init(&ownRunOutbound{interceptor.ActivityOutboundInterceptorBase{Next: outbound}})
}

type ownRunOutbound struct {
	interceptor.ActivityOutboundInterceptorBase
}

func (o *ownRunOutbound) GetInfo(ctx context.Context) activity.Info {
	info := o.Next.GetInfo(ctx)
	info.WorkflowExecution.RunID = "run-of-" + info.WorkflowExecution.ID
	return info
}
