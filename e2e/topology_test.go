package e2e_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"tarry/internal/demo"
	"tarry/internal/stack"
)

// composed is what docker-compose.yml says about a service, with the values of deploy/demo.env.
type composed struct {
	Environment map[string]string
	Command     []string
}

var interpolation = regexp.MustCompile(`\$\{([A-Z_]+)(?::[-?]([^}]*))?\}`)

func readCompose(t *testing.T) map[string]composed {
	t.Helper()
	values := map[string]string{}
	env, err := os.ReadFile("../deploy/demo.env")
	require.NoError(t, err)
	for line := range strings.Lines(string(env)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			values[name] = value
		}
	}
	body, err := os.ReadFile("../docker-compose.yml")
	require.NoError(t, err)
	text := interpolation.ReplaceAllStringFunc(string(body), func(match string) string {
		m := interpolation.FindStringSubmatch(match)
		if value, ok := values[m[1]]; ok {
			return value
		}
		return m[2]
	})
	var file struct{ Services map[string]composed }
	require.NoError(t, yaml.Unmarshal([]byte(text), &file))
	return file.Services
}

// topology is docker-compose.yml with its demo as plain processes: a Temporal server, two workers, and two servers behind a proxy
// on PostgreSQL, beside the demo's services. Names of containers are loopback, and paths are those of folders of the test.
type topology struct {
	*world
	proxy   *balancer
	public  string
	ca      []byte
	secrets string
}

func newTopology(t *testing.T, database string) *topology {
	t.Helper()
	services, dir := readCompose(t), t.TempDir()
	folder := func(name string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(path, 0o700))
		return path
	}
	out := &topology{secrets: filepath.Join(dir, "secrets")}
	runProgram(t, dir, "sh", absolute(t, "../deploy/secrets.sh"), out.secrets)
	require.NoError(t, os.CopyFS(filepath.Join(folder("agents"), "planner"), os.DirFS("../examples/planner")))
	out.proxy = newBalancer(t)
	out.public = "http://localhost:" + portOf(t, out.proxy.Addr().String())
	provider, mcp := freePort(t), freePort(t)
	as := strings.NewReplacer(
		"http://localhost:8080", out.public,
		"0.0.0.0:8090", "127.0.0.1:"+provider, "https://id.localhost:8090", "https://localhost:"+provider,
		"0.0.0.0:8091", "127.0.0.1:"+mcp, "https://mcp.localhost:8091", "https://localhost:"+mcp,
		"/run/secrets", out.secrets, "/run/agent-secrets", filepath.Join(out.secrets, "agents"),
		"/etc/tarry/ca", folder("ca"), "/etc/tarry/agents", folder("agents"), "/var/lib/demo", folder("tls"), "/var/lib/tarry", folder("keyset"),
		"172.30.80.10/32", "127.0.0.1/32", "id.localhost", "localhost", "mcp.localhost", "127.0.0.1",
	)
	command := func(service string) (args []string) {
		for _, arg := range services[service].Command {
			args = append(args, as.Replace(arg))
		}
		return args
	}
	environment := func(service string) (env []string) {
		for name, value := range services[service].Environment {
			switch name {
			case "TARRY_HTTP_ADDR", "TARRY_ADMIN_ADDR", "TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE": // differ from process to process
				continue
			case "TARRY_DATABASE_URL":
				value = database
			case "TARRY_DATABASE_PASSWORD_FILE":
				if u, err := url.Parse(database); err == nil {
					if _, there := u.User.Password(); there {
						continue
					}
				}
			}
			env = append(env, name+"="+as.Replace(value))
		}
		return env
	}
	starter := filepath.Join(binaries, "starter")
	runProgram(t, dir, starter, command("demo-certificates")...)
	var err error
	out.ca, err = os.ReadFile(filepath.Join(folder("ca"), "ca.pem"))
	require.NoError(t, err)
	background(t, dir, starter, command("demo-services")...)

	w := &world{t: t, dir: dir}
	w.Stack, err = stack.New(t.Context(), stack.Config{
		Dir: folder("data"), Bin: binaries, Base: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir},
		Env: environment("server-1"), WorkerEnv: append(environment("worker"), "TARRY_SCRIPT_JOURNAL="+w.journal()),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, w.Close())
		w.checkRaces()
		if t.Failed() {
			w.dump()
		}
	})
	out.world = w
	out.proxy.servers = []string{w.Addr(stack.Server), w.Addr(stack.SecondServer)}
	require.NoError(t, w.Start(t.Context(), stack.Temporal))
	out.eventually("the demo's services do not answer", func() bool {
		return out.get("https://localhost:"+provider+"/.well-known/openid-configuration") == http.StatusOK
	})
	token, err := os.ReadFile(filepath.Join(folder("keyset"), "token"))
	require.NoError(t, err)
	w.api = apiClient{t: t, base: out.public, token: strings.TrimSpace(string(token))}
	return out
}

// browser is a person's that trusts the demo's CA.
func (w *topology) browser() *demo.Browser {
	w.t.Helper()
	b := demo.NewBrowser()
	require.NoError(w.t, b.Trust(w.ca))
	return b
}

// get is the status of a GET without credentials; 0 when nobody answers.
func (w *topology) get(address string) int {
	w.t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.ca)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, address, http.NoBody)
	require.NoError(w.t, err)
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	require.NoError(w.t, resp.Body.Close())
	return resp.StatusCode
}

// balancer is a reverse proxy that forgets nobody's address. Requests go to the server that route names, or where that one is down
// to the other.
type balancer struct {
	net.Listener
	servers []string
	route   atomic.Pointer[func(path string) int]
	seen    [2]atomic.Int64
	// hidden says that it names nobody as whom it asks, as what forwards connections does.
	hidden atomic.Bool
}

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &balancer{Listener: l}
	b.to(func(string) int { return 0 })
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "chosen", r.In.Host
			if !b.hidden.Load() {
				r.SetXForwarded()
			}
		},
		Transport:     &http.Transport{DisableKeepAlives: true, DialContext: b.dial},
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if !b.hidden.Load() {
				t.Logf("%s %s: %v", r.Method, r.URL.Path, err)
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), pathKey{}, r.URL.Path)))
	})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	return b
}

type pathKey struct{}

func (b *balancer) to(route func(path string) int) { b.route.Store(&route) }

func (b *balancer) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	path, _ := ctx.Value(pathKey{}).(string)
	first := (*b.route.Load())(path)
	var dialer net.Dialer
	var errs []string
	for _, i := range []int{first, 1 - first} {
		c, err := dialer.DialContext(ctx, network, b.servers[i])
		if err == nil {
			b.seen[i].Add(1)
			return c, nil
		}
		errs = append(errs, err.Error())
	}
	return nil, fmt.Errorf("no server: %s", strings.Join(errs, ", "))
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	require.NoError(t, err)
	return abs
}

func portOf(t *testing.T, addr string) string {
	t.Helper()
	_, p, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	return p
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return portOf(t, l.Addr().String())
}

func runProgram(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

// background runs a program until the test ends.
func background(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	log, err := os.Create(filepath.Join(dir, filepath.Base(program)+".log"))
	require.NoError(t, err)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Wait() // killed: the test's context has ended
		if t.Failed() {
			body, err := os.ReadFile(log.Name())
			t.Log(string(body), err)
		}
		require.NoError(t, log.Close())
	})
}

// counts are how many connections each server took, since the last call.
func (b *balancer) counts() []int64 {
	return slices.Collect(func(yield func(int64) bool) {
		for i := range b.seen {
			if !yield(b.seen[i].Swap(0)) {
				return
			}
		}
	})
}
