package session

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/genai"

	"tarry/agent"
)

// Bounds of artifacts. How much one user may keep is the store's setting.
const (
	// MaxArtifact is the most bytes of one version.
	MaxArtifact = 16 << 20
	// MaxArtifactName is the longest name, in bytes.
	MaxArtifactName = 256
	// MaxArtifactNames is how many names a session may use, and the user: names of a user in an app besides: lists have no pages.
	MaxArtifactNames = 1000
	// MaxArtifactVersions is how many versions a name may have, for the same reason.
	MaxArtifactVersions = 10_000
	// MaxArtifactMetadata is the most bytes of a version's custom metadata, as JSON.
	MaxArtifactMetadata = 4 << 10
)

// Latest stands for an artifact's newest version.
const Latest = -1

var (
	// ErrArtifact marks (by wrapping) an artifact that cannot be kept as it is. What it says is for whoever sent it.
	ErrArtifact = errors.New("artifact")
	// ErrArtifactSize marks one that is too large, or for which there is no room.
	ErrArtifactSize = fmt.Errorf("%w is too large", ErrArtifact)
)

// NewArtifact is a version to keep.
type NewArtifact struct {
	// Name may contain slashes. One that begins with user: is shared by all sessions that the user has with the app.
	Name string
	// Part is a text, inline data or a reference to a file elsewhere.
	Part *genai.Part
	// Custom is JSON; nil means none.
	Custom map[string]any
	// Maker is whose save this is: the call or event that is being made. A repeated save of the same maker and Nth of the name
	// makes no second version: see [Artifacts]. Empty for what clients save, each time anew.
	Maker string
	// Nth counts the maker's saves of the name, from 0.
	Nth int
}

// ArtifactVersion is what is known of a version besides its content, in ADK's shape.
type ArtifactVersion struct {
	Version int            `json:"version"` // from 0
	URI     string         `json:"canonicalUri"`
	Custom  map[string]any `json:"customMetadata"`
	Created float64        `json:"createTime"` // seconds since 1970
	MIME    string         `json:"mimeType,omitempty"`
}

// Artifacts keeps files of sessions and users, with versions. It is safe for concurrent use by several processes. The session
// must be the owner's, also for user: names; else every method returns [ErrNotFound].
type Artifacts interface {
	// SaveArtifact stores the next version. A repeat by the same maker finds the version that it has made; until the call that is
	// the maker is answered, it puts its own content there, since the attempt before it was cut off.
	SaveArtifact(ctx context.Context, owner agent.Owner, session string, n NewArtifact) (ArtifactVersion, error)
	// Artifact returns a version, or [Latest]; [ErrNotFound] if there is none.
	Artifact(ctx context.Context, owner agent.Owner, session, name string, version int) (*genai.Part, ArtifactVersion, error)
	// ArtifactNames lists the names of the session and the user: names of its user, sorted.
	ArtifactNames(ctx context.Context, owner agent.Owner, session string) ([]string, error)
	// ArtifactVersions lists the versions of a name, oldest first; none is no error.
	ArtifactVersions(ctx context.Context, owner agent.Owner, session, name string) ([]ArtifactVersion, error)
	// ArtifactsOf returns the newest version of each name that a maker has saved.
	ArtifactsOf(ctx context.Context, owner agent.Owner, session, maker string) (map[string]int, error)
	// DeleteArtifact deletes all versions of a name; that there are none is no error.
	DeleteArtifact(ctx context.Context, owner agent.Owner, session, name string) error
}

// UserArtifact says whether a name is shared by the sessions of its user.
func UserArtifact(name string) bool { return strings.HasPrefix(name, ScopeUser) }

// CheckArtifactName says what is wrong with a name. Names are parts of URLs: those that a URL would lose, or that look like the
// routes below an artifact, are refused, as ADK does.
func CheckArtifactName(name string) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w name %q %s", ErrArtifact, cut(name, 80), fmt.Sprintf(format, args...))
	}
	rest := strings.TrimPrefix(name, ScopeUser)
	switch {
	case rest == "":
		return bad("is empty; name a file, such as report.txt")
	case len(name) > MaxArtifactName:
		return bad("is %d bytes long, at most %d are allowed", len(name), MaxArtifactName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }):
		return bad("contains a control character or invalid UTF-8")
	case strings.Contains(name, `\`):
		return bad(`contains a backslash; separate folders by "/"`)
	}
	segments := strings.Split(rest, "/")
	for _, s := range segments {
		switch {
		case s == "" || s == "." || s == "..":
			return bad(`has a part that is empty, "." or "..", which a URL would lose`)
		case len(segments) > 1 && slices.Contains([]string{"apps", "users", "sessions", "artifacts", "versions"}, strings.ToLower(s)):
			return bad("has the part %q, which routes use; choose another", s)
		}
	}
	return nil
}

// Check says what is wrong with n. Of what is too large it is an [ErrArtifactSize].
func (n NewArtifact) Check() error {
	if err := CheckArtifactName(n.Name); err != nil {
		return err
	}
	p := n.Part
	kinds := 0
	if p != nil {
		for _, on := range []bool{p.InlineData != nil, p.FileData != nil, p.Text != ""} {
			if on {
				kinds++
			}
		}
	}
	switch {
	case kinds == 0:
		return fmt.Errorf("%w %q has no content: give a text, inlineData or fileData", ErrArtifact, n.Name)
	case kinds > 1:
		return fmt.Errorf("%w %q has more than one content: give a text, inlineData or fileData", ErrArtifact, n.Name)
	case p.FileData != nil && strings.HasPrefix(p.FileData.FileURI, artifactScheme+"://"):
		return fmt.Errorf("%w %q: a reference to another artifact is not kept; save its content", ErrArtifact, n.Name)
	case p.FileData != nil && p.FileData.FileURI == "":
		return fmt.Errorf("%w %q: fileData has no fileUri", ErrArtifact, n.Name)
	}
	if size := n.size(); size > MaxArtifact {
		return fmt.Errorf("%w: %q has %d bytes, at most %d are kept", ErrArtifactSize, n.Name, size, MaxArtifact)
	}
	return nil
}

func (n NewArtifact) size() int {
	switch p := n.Part; {
	case p.InlineData != nil:
		return len(p.InlineData.Data) + len(p.InlineData.MIMEType) + len(p.InlineData.DisplayName)
	case p.FileData != nil:
		return len(p.FileData.FileURI) + len(p.FileData.MIMEType) + len(p.FileData.DisplayName)
	}
	return len(n.Part.Text)
}

// MIME is the type of what n holds, as ADK names it; empty if it is not known.
func (n NewArtifact) MIME() string {
	switch p := n.Part; {
	case p.InlineData != nil && p.InlineData.MIMEType == "":
		return "application/octet-stream"
	case p.InlineData != nil:
		return p.InlineData.MIMEType
	case p.FileData != nil:
		return p.FileData.MIMEType
	}
	return "text/plain"
}

const artifactScheme = "artifact"

// ArtifactURI names a version for good, in ADK's form. It is no address: nothing is served there.
func ArtifactURI(owner agent.Owner, session, name string, version int) string {
	path := "/" + owner.App + "/users/" + owner.User
	if !UserArtifact(name) {
		path += "/sessions/" + session
	}
	u := url.URL{Scheme: artifactScheme, Host: "apps", Path: fmt.Sprintf("%s/artifacts/%s/versions/%d", path, name, version)}
	return u.String()
}

// Seconds is a time as events have it.
func Seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// cut shortens a text to at most size bytes, at the end of a character.
func cut(s string, size int) string {
	if len(s) <= size {
		return s
	}
	return strings.ToValidUTF8(s[:size], "") + "…"
}
