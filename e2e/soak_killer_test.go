package e2e_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/stack"
)

// killer ends processes at points and moments that a seed chooses, and starts them again at once.
type killer struct {
	*world
	db     *sql.DB
	random *rand.Rand
	// killed counts what ended, by name; "database" are connections that were cut, "crash" is the database as a whole.
	killed map[string]int
	// postgres is the process of the database; 0: not ours to kill.
	postgres int
}

func newKiller(w *world, db *sql.DB, seed uint64) *killer {
	k := &killer{world: w, db: db, killed: map[string]int{}, random: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // a test that can be repeated
	k.postgres = number(w.t.(*testing.T), "TARRY_TEST_POSTGRES_PID", 0)
	return k
}

func soakProcesses() []stack.Name {
	return []stack.Name{stack.Temporal, stack.Worker, stack.SecondWorker, stack.Server, stack.SecondServer}
}

// blow is what one kill does.
type blow struct {
	// point is where a process is held first; empty: at any moment.
	point string
	// held says that the one that is held there dies.
	held    bool
	victims []stack.Name
	// database: its connections are cut; crash: all of it starts anew.
	database, crash bool
	wait            time.Duration
	// again is when the victims are killed once more, while they start; 0: not.
	again time.Duration
}

// choose takes as many random numbers for each kill, so that the same seed makes the same kills.
func (k *killer) choose() (b blow) {
	r := k.random
	b.wait = time.Duration(r.IntN(400)) * time.Millisecond
	point, how, one, many, again := r.IntN(2*len(points)), r.IntN(100), r.IntN(100), r.IntN(1<<5), r.IntN(300)
	if point < len(points) {
		b.point, b.held = points[point].name, how < 60
	}
	switch {
	case how < 75:
		b.victims = []stack.Name{soakVictim(one)}
	case how < 85:
		for i, name := range soakProcesses() {
			if many&(1<<i) != 0 {
				b.victims = append(b.victims, name)
			}
		}
	case how < 87:
		b.victims = soakProcesses()
	case how < 97:
		b.database = true
	default:
		b.crash = k.postgres != 0
		b.database = !b.crash
	}
	if again < 60 {
		b.again = time.Duration(again) * 2 * time.Millisecond
	}
	return b
}

// soakVictim prefers what starts fast: Temporal takes longer than the others together.
func soakVictim(n int) stack.Name {
	names := soakProcesses()
	if n < 6 {
		return names[0]
	}
	return names[1+n%4]
}

// strike does one kill.
func (k *killer) strike(ctx context.Context, i int) {
	k.t.Helper()
	b := k.choose()
	pause(ctx, b.wait)
	holder := k.holdAt(ctx, b.point)
	if b.held && holder != "" {
		b.victims = []stack.Name{holder}
	}
	k.t.Logf("kill %d: at %q (held: %q) %v, cut %t, crash %t, again after %s", i, b.point, holder, b.victims, b.database, b.crash, b.again)
	if len(b.victims) > 0 {
		require.NoError(k.t, k.Kill(b.victims...))
	}
	if b.database {
		_, err := k.db.ExecContext(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		require.NoError(k.t, err)
		k.killed["database"]++
	}
	if b.crash {
		k.crash(ctx)
	}
	if b.point != "" {
		k.write("faults/"+b.point+".go", "")
	}
	for _, name := range b.victims {
		k.killed[string(name)]++
	}
	if len(b.victims) > 0 && b.again > 0 {
		short, cancel := context.WithTimeout(ctx, b.again)
		_ = k.StartTogether(short, b.victims...) // whoever is not ready by then is killed
		cancel()
		require.NoError(k.t, k.Kill(b.victims...))
		for _, name := range b.victims {
			k.killed[string(name)]++
		}
	}
	if slices.Contains(b.victims, stack.Temporal) {
		require.NoError(k.t, k.Start(ctx, stack.Temporal))
	}
	if len(b.victims) > 0 {
		require.NoError(k.t, k.StartTogether(ctx, b.victims...))
	}
	if b.point != "" {
		k.clear(b.point)
	}
}

// holdAt waits a moment for a process that reaches the point, and says which did.
func (k *killer) holdAt(ctx context.Context, point string) stack.Name {
	k.t.Helper()
	if point == "" {
		return ""
	}
	file := filepath.Join(k.dir, "faults", point)
	k.write("faults/"+point+".hold", "")
	for until := time.Now().Add(time.Second); ; pause(ctx, 5*time.Millisecond) {
		body, err := os.ReadFile(file + ".held")
		if err == nil {
			return k.nameOf(string(body))
		}
		if time.Now().After(until) && os.Remove(file+".hold") == nil {
			return ""
		}
		if time.Now().After(until.Add(5 * time.Second)) {
			return "" // it was killed, or ended, between the two
		}
	}
}

func (k *killer) nameOf(pid string) stack.Name {
	for _, name := range soakProcesses() {
		if strconv.Itoa(k.Pid(name)) == strings.TrimSpace(pid) {
			return name
		}
	}
	return ""
}

// crash kills a process of the database, at which it drops what all others do and recovers from its log.
func (k *killer) crash(ctx context.Context) {
	k.t.Helper()
	probe, err := k.db.Conn(ctx)
	require.NoError(k.t, err)
	defer func() { _ = probe.Close() }()
	var pid int
	err = probe.QueryRowContext(ctx, `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY pid LIMIT 1`).Scan(&pid)
	if errors.Is(err, sql.ErrNoRows) {
		return // nobody is there
	}
	require.NoError(k.t, err)
	require.NoError(k.t, syscall.Kill(pid, syscall.SIGKILL))
	k.killed["crash"]++
	k.eventually("the database does not notice", func() bool { return probe.PingContext(ctx) != nil })
	k.eventually("the database does not recover", func() bool { return k.db.PingContext(ctx) == nil })
}

func (k *killer) summary() string {
	var parts []string
	for _, name := range append(soakProcesses(), "database", "crash") {
		parts = append(parts, fmt.Sprintf("%s %d", name, k.killed[string(name)]))
	}
	return strings.Join(parts, ", ")
}
