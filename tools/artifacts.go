package tools

import (
	"context"
	"errors"

	"google.golang.org/genai"
)

// ErrNoArtifact says that there is no artifact of that name, or not in that version.
var ErrNoArtifact = errors.New("tools: there is no such artifact")

// errNoCall is for a context that is not the one that a tool or a callback got.
var errNoCall = errors.New("tools: the context is not that of a call")

// LatestVersion stands for the newest version of an artifact.
const LatestVersion = -1

// Artifact is what to save. Only Name and Part are required.
type Artifact struct {
	// Name may contain slashes. One that begins with "user:" is shared by all sessions that the user has with the app.
	Name string
	// Part is a text, inline data or a reference to a file elsewhere.
	Part *genai.Part
	// Custom is kept with the version, as JSON.
	Custom map[string]any
}

// Artifacts are the files of a session, for the call of a tool or a callback. A save that the store or the bounds refuse is an
// [*Error], for the model to read.
type Artifacts interface {
	// Save stores the next version and returns its number, from 0. An attempt that repeats another's saves gets the same numbers.
	Save(ctx context.Context, a Artifact) (int, error)
	// Load returns a version, or [LatestVersion]; [ErrNoArtifact] if there is none.
	Load(ctx context.Context, name string, version int) (*genai.Part, error)
	// List names the artifacts of the session and those that its user shares between sessions, sorted.
	List(ctx context.Context) ([]string, error)
}

type artifactsKey struct{}

// WithArtifacts puts a into ctx, for [SaveArtifact] and the like.
func WithArtifacts(ctx context.Context, a Artifacts) context.Context {
	return context.WithValue(ctx, artifactsKey{}, a)
}

func artifactsOf(ctx context.Context) (Artifacts, error) {
	a, ok := ctx.Value(artifactsKey{}).(Artifacts)
	if !ok {
		return nil, errNoCall
	}
	return a, nil
}

// SaveArtifact keeps a file for the running tool or callback and returns its version, from 0. ctx is the one that the tool or the
// callback got. The event of the call names the version in its artifactDelta. When an attempt of the call is repeated, because it
// was cut off or waited for a login, the same saves in the same order make the same versions, with the content of the last attempt.
// A save after the call has ended is an error.
func SaveArtifact(ctx context.Context, a Artifact) (int, error) {
	in, err := artifactsOf(ctx)
	if err != nil {
		return 0, err
	}
	return in.Save(ctx, a) //nolint:wrapcheck // an *Error for the model stays one
}

// LoadArtifact returns the newest version of a file; [ErrNoArtifact] if there is none. What clients have uploaded is found too: do
// not trust it.
func LoadArtifact(ctx context.Context, name string) (*genai.Part, error) {
	return LoadArtifactVersion(ctx, name, LatestVersion)
}

// LoadArtifactVersion returns one version of a file; [ErrNoArtifact] if there is none.
func LoadArtifactVersion(ctx context.Context, name string, version int) (*genai.Part, error) {
	in, err := artifactsOf(ctx)
	if err != nil {
		return nil, err
	}
	return in.Load(ctx, name, version) //nolint:wrapcheck // as above
}

// ListArtifacts names the files of the session and those that its user shares between sessions, sorted.
func ListArtifacts(ctx context.Context) ([]string, error) {
	in, err := artifactsOf(ctx)
	if err != nil {
		return nil, err
	}
	return in.List(ctx) //nolint:wrapcheck // as above
}
