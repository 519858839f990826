package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/genai"

	"tarry/auth"
	"tarry/session"
	"tarry/tools"
)

// artifacts is what the tool or the callbacks of one attempt save. The maker is the call or the event that the attempt makes, which
// every attempt of it has in common.
type artifacts struct {
	a     *Activities
	t     *attempt
	maker string
	// scrub knows the secrets that the attempt uses.
	scrub *auth.Scrubber
	// earlier says that another attempt may have saved something.
	earlier bool

	mu    sync.Mutex
	saves map[string]int // by name
}

// withArtifacts lets what runs with the context that it returns save artifacts, as maker.
func (a *Activities) withArtifacts(ctx context.Context, t *attempt, maker string) context.Context {
	t.artifacts = &artifacts{a: a, t: t, maker: maker, scrub: new(auth.Scrubber), earlier: t.number > 1, saves: map[string]int{}}
	return tools.WithMemories(tools.WithArtifacts(ctx, t.artifacts), memories{a, t})
}

// delta is what the event of the attempt says of artifacts: all that its attempts have saved.
func (k *artifacts) delta(ctx context.Context) (map[string]int, error) {
	if k == nil {
		return nil, nil
	}
	k.mu.Lock()
	looked := k.earlier || len(k.saves) > 0
	k.mu.Unlock()
	if !looked {
		return nil, nil
	}
	saved, err := k.a.Artifacts.ArtifactsOf(ctx, k.t.row.Owner, k.t.row.ID, k.maker)
	if err != nil {
		return nil, k.a.failed(ctx, "find artifacts", err)
	}
	return saved, nil
}

// Save implements [tools.Artifacts].
func (k *artifacts) Save(ctx context.Context, f tools.Artifact) (int, error) {
	n := session.NewArtifact{Name: k.scrub.Scrub(f.Name), Part: k.clean(f.Part), Maker: k.maker}
	if len(f.Custom) > 0 {
		custom, err := plain(f.Custom)
		if err != nil {
			return 0, tools.Errorf("artifact %q: custom metadata is not a JSON object", n.Name)
		}
		n.Custom, _ = k.scrub.ScrubValue(custom).(map[string]any)
	}
	k.mu.Lock()
	n.Nth = k.saves[n.Name]
	k.saves[n.Name]++
	k.mu.Unlock()
	v, err := k.a.Artifacts.SaveArtifact(ctx, k.t.row.Owner, k.t.row.ID, n)
	if errors.Is(err, session.ErrArtifact) {
		return 0, &tools.Error{Message: err.Error(), Cause: err}
	}
	if err != nil {
		return 0, unavailable("save artifact", err)
	}
	k.a.fault(ctx, "artifact.saved")
	return v.Version, nil
}

// unavailable is a failure of the store in the middle of a tool, which may have done something already.
func unavailable(operation string, err error) error {
	return fmt.Errorf("%w: %s: %w", tools.ErrUnknown, operation, err)
}

// clean is a part without the secrets that the attempt uses.
func (k *artifacts) clean(p *genai.Part) *genai.Part {
	if p == nil {
		return nil
	}
	out := *p
	out.Text = k.scrub.Scrub(p.Text)
	if p.InlineData != nil {
		data := *p.InlineData
		if text := string(data.Data); k.scrub.Scrub(text) != text {
			data.Data = []byte(k.scrub.Scrub(text))
		}
		data.DisplayName = k.scrub.Scrub(data.DisplayName)
		out.InlineData = &data
	}
	if p.FileData != nil {
		file := *p.FileData
		file.FileURI, file.DisplayName = k.scrub.Scrub(file.FileURI), k.scrub.Scrub(file.DisplayName)
		out.FileData = &file
	}
	return &out
}

// Load implements [tools.Artifacts].
func (k *artifacts) Load(ctx context.Context, name string, version int) (*genai.Part, error) {
	part, _, err := k.a.Artifacts.Artifact(ctx, k.t.row.Owner, k.t.row.ID, name, version)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil, fmt.Errorf("%w: %q", tools.ErrNoArtifact, name)
	case err != nil:
		return nil, unavailable("load artifact", err)
	}
	return part, nil
}

// List implements [tools.Artifacts].
func (k *artifacts) List(ctx context.Context) ([]string, error) {
	names, err := k.a.Artifacts.ArtifactNames(ctx, k.t.row.Owner, k.t.row.ID)
	if err != nil {
		return nil, unavailable("list artifacts", err)
	}
	return names, nil
}

// memories are those of the user whose session it is.
type memories struct {
	a *Activities
	t *attempt
}

// Search implements [tools.Memories].
func (m memories) Search(ctx context.Context, query string) ([]tools.Memory, error) {
	found, err := m.a.Memory.Recall(ctx, m.t.row.Owner, query)
	if err != nil {
		return nil, unavailable("search memory", err)
	}
	out := make([]tools.Memory, 0, len(found))
	for _, f := range found {
		out = append(out, tools.Memory{Author: f.Author, Time: time.UnixMicro(int64(f.Time * 1e6)).UTC(), Text: f.Text})
	}
	return out, nil
}

// Add implements [tools.Memories].
func (m memories) Add(ctx context.Context) error {
	if err := m.a.Memory.Remember(ctx, m.t.row.Owner, m.t.row.ID); err != nil {
		return unavailable("add session to memory", err)
	}
	return nil
}
