package store

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/session"
)

var _ session.Artifacts = (*Store)(nil)

// DefaultArtifacts is how many bytes of artifacts one user may keep in one app.
const DefaultArtifacts = 256 << 20

// artifactRow is what a version counts besides its content, so that empty ones are bounded too.
const artifactRow = 1 << 10

// LimitArtifacts sets how many bytes of artifacts one user may keep in one app; 0 means any number. Call it before use.
func (s *Store) LimitArtifacts(most int64) { s.artifacts = most }

// artifact is a row.
type artifact struct {
	session.NewArtifact
	workflowID string // empty: the user's
	version    int
	created    int64
}

// scope is where the session's artifact of a name lies.
func scope(row session.Session, name string) string {
	if session.UserArtifact(name) {
		return ""
	}
	return row.WorkflowID
}

// SaveArtifact implements [session.Artifacts]. Savers of one user in one app wait for each other.
func (s *Store) SaveArtifact(ctx context.Context, owner agent.Owner, id string, n session.NewArtifact) (out session.ArtifactVersion, err error) {
	if err := n.Check(); err != nil {
		return out, err //nolint:wrapcheck // for the caller's client, as it is
	}
	custom, err := encodeCustom(n)
	if err != nil {
		return out, err
	}
	err = s.tx(ctx, func(c *conn) error {
		row, err := c.lockedSession(owner, id)
		if err != nil {
			return err
		}
		if err := c.lockAsker(owner); err != nil {
			return err
		}
		a := artifact{NewArtifact: n, workflowID: scope(row, n.Name), created: c.now}
		made, err := c.made(owner, a)
		if err != nil {
			return err
		}
		if err := c.roomFor(owner, a, made, custom, s.artifacts); err != nil {
			return err
		}
		if made == nil {
			err = c.insertArtifact(owner, &a, custom)
		} else {
			a.version, a.created = made.version, made.created
			err = c.replaceArtifact(*made, a, custom)
		}
		out = described(owner, id, a)
		return err
	})
	return out, err
}

func encodeCustom(n session.NewArtifact) (string, error) {
	if len(n.Custom) == 0 {
		return "{}", nil
	}
	custom, err := encode(n.Custom)
	if err != nil {
		return "", fmt.Errorf("%w %q: custom metadata is not JSON", session.ErrArtifact, n.Name)
	}
	if len(custom) > session.MaxArtifactMetadata {
		return "", fmt.Errorf("%w: custom metadata of %q has %d bytes, at most %d are kept", session.ErrArtifactSize, n.Name, len(custom), session.MaxArtifactMetadata)
	}
	return custom, nil
}

// made finds the version that an earlier attempt of the same maker has saved; nil if there is none.
func (c *conn) made(owner agent.Owner, a artifact) (*artifact, error) {
	if a.Maker == "" {
		return nil, nil //nolint:nilnil // a client's save is new each time
	}
	found, err := c.findArtifacts(`maker = ? AND name = ? AND nth = ? AND app = ? AND usr = ? AND workflow_id = ?`,
		a.Maker, a.Name, a.Nth, owner.App, owner.User, a.workflowID)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return &found[0], nil
	}
	settled, err := c.settledMaker(a.Maker)
	if err != nil {
		return nil, err
	}
	if settled { // an attempt that was cut off and came back too late: nothing would name what it saves
		return nil, fmt.Errorf("%w: %s", session.ErrAnswered, a.Maker)
	}
	return nil, nil //nolint:nilnil // none yet
}

// settledMaker says whether the maker, a call or an event, has come to its end.
func (c *conn) settledMaker(maker string) (bool, error) {
	var n int
	err := c.get(`SELECT (SELECT COUNT(*) FROM calls WHERE id = ? AND answer <> '') + (SELECT COUNT(*) FROM events WHERE id = ?)`, []any{maker, maker}, []any{&n})
	return n > 0, err
}

func sizeOf(a artifact, custom string) int64 {
	_, body, label, mime := parts(a.Part)
	return int64(len(body) + len(custom) + len(a.Name) + len(label) + len(mime) + artifactRow)
}

// roomFor bounds what a user keeps, and what lists have to name.
func (c *conn) roomFor(owner agent.Owner, a artifact, instead *artifact, custom string, most int64) error {
	size := sizeOf(a, custom)
	if instead == nil {
		var versions, names int
		if err := c.get(`SELECT COUNT(*) FROM artifacts WHERE app = ? AND usr = ? AND workflow_id = ? AND name = ?`,
			[]any{owner.App, owner.User, a.workflowID, a.Name}, []any{&versions}); err != nil {
			return err
		}
		if versions >= session.MaxArtifactVersions {
			return fmt.Errorf("%w: %q has %d versions already; delete it, or save under another name", session.ErrArtifactSize, a.Name, versions)
		}
		if versions == 0 {
			if err := c.get(`SELECT COUNT(DISTINCT name) FROM artifacts WHERE app = ? AND usr = ? AND workflow_id = ?`,
				[]any{owner.App, owner.User, a.workflowID}, []any{&names}); err != nil {
				return err
			}
		}
		if names >= session.MaxArtifactNames {
			return fmt.Errorf("%w: there are %d artifacts already; delete some", session.ErrArtifactSize, names)
		}
	} else {
		before, err := encodeCustom(instead.NewArtifact)
		if err != nil {
			return err
		}
		size -= sizeOf(*instead, before)
	}
	if most == 0 {
		return nil
	}
	var kept int64
	if err := c.get(`SELECT COALESCE(SUM(size), 0) FROM artifacts WHERE app = ? AND usr = ?`, []any{owner.App, owner.User}, []any{&kept}); err != nil {
		return err
	}
	if kept+size > most {
		return fmt.Errorf("%w: the user's artifacts in this app would have %d bytes, at most %d are kept; delete some", session.ErrArtifactSize, kept+size, most)
	}
	return nil
}

func (c *conn) insertArtifact(owner agent.Owner, a *artifact, custom string) error {
	kind, body, label, mime := parts(a.Part)
	return c.get(`INSERT INTO artifacts (app, usr, workflow_id, name, version, maker, nth, kind, mime, custom, label, body, size, created)
		VALUES (?, ?, ?, ?, (SELECT COALESCE(MAX(version), -1) + 1 FROM artifacts WHERE app = ? AND usr = ? AND workflow_id = ? AND name = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?)
		RETURNING version`,
		[]any{
			owner.App, owner.User, a.workflowID, a.Name, owner.App, owner.User, a.workflowID, a.Name,
			a.Maker, a.Nth, kind, mime, custom, label, body, sizeOf(*a, custom), a.created,
		}, []any{&a.version})
}

// replaceArtifact puts the content of a repeated attempt in the place of what the one before has saved, unless that counts.
func (c *conn) replaceArtifact(old, a artifact, custom string) error {
	settled, err := c.settledMaker(old.Maker)
	if err != nil || settled {
		return err
	}
	kind, body, label, mime := parts(a.Part)
	_, err = c.exec(`UPDATE artifacts SET kind = ?, mime = ?, custom = ?, label = ?, body = ?, size = ? WHERE maker = ? AND name = ? AND nth = ?`,
		kind, mime, custom, label, body, sizeOf(a, custom), old.Maker, old.Name, old.Nth)
	return err
}

const (
	kindText = "text"
	kindData = "data"
	kindFile = "file"
)

// parts takes a content apart. Text is kept as bytes: a column of text does not hold every character.
func parts(p *genai.Part) (kind string, body []byte, label, mime string) {
	switch {
	case p.InlineData != nil:
		kind, body, label, mime = kindData, p.InlineData.Data, p.InlineData.DisplayName, p.InlineData.MIMEType
	case p.FileData != nil:
		kind, body, label, mime = kindFile, []byte(p.FileData.FileURI), p.FileData.DisplayName, p.FileData.MIMEType
	default:
		kind, body = kindText, []byte(p.Text)
	}
	if body == nil {
		body = []byte{}
	}
	return kind, body, label, mime
}

func assembled(kind string, body []byte, label, mime string) *genai.Part {
	switch kind {
	case kindData:
		if body == nil { // as one database has an empty one
			body = []byte{}
		}
		return &genai.Part{InlineData: &genai.Blob{Data: body, DisplayName: label, MIMEType: mime}}
	case kindFile:
		return &genai.Part{FileData: &genai.FileData{FileURI: string(body), DisplayName: label, MIMEType: mime}}
	}
	return &genai.Part{Text: string(body)}
}

func (c *conn) findArtifacts(where string, args ...any) ([]artifact, error) {
	return collect(c, `SELECT workflow_id, name, version, maker, nth, kind, mime, custom, label, body, created FROM artifacts WHERE `+where, args,
		func(scan func(...any) error) (a artifact, err error) {
			var kind, mime, custom, label string
			var body []byte
			if err := scan(&a.workflowID, &a.Name, &a.version, &a.Maker, &a.Nth, &kind, &mime, &custom, &label, &body, &a.created); err != nil {
				return a, err
			}
			a.Part = assembled(kind, body, label, mime)
			return a, decode(custom, &a.Custom)
		})
}

func described(owner agent.Owner, id string, a artifact) session.ArtifactVersion {
	if a.Custom == nil {
		a.Custom = map[string]any{}
	}
	return session.ArtifactVersion{
		Version: a.version, URI: session.ArtifactURI(owner, id, a.Name, a.version), Custom: a.Custom, Created: session.Seconds(at(a.created)), MIME: a.MIME(),
	}
}

// Artifact implements [session.Artifacts].
func (s *Store) Artifact(ctx context.Context, owner agent.Owner, id, name string, version int) (*genai.Part, session.ArtifactVersion, error) {
	c := s.read(ctx)
	row, err := c.session(owner, id)
	if err != nil {
		return nil, session.ArtifactVersion{}, err
	}
	where, args := `app = ? AND usr = ? AND workflow_id = ? AND name = ?`, []any{owner.App, owner.User, scope(row, name), name}
	if version == session.Latest {
		where += ` ORDER BY version DESC LIMIT 1`
	} else {
		where, args = where+` AND version = ?`, append(args, version)
	}
	found, err := c.findArtifacts(where, args...)
	if err != nil {
		return nil, session.ArtifactVersion{}, err
	}
	if len(found) == 0 {
		return nil, session.ArtifactVersion{}, session.ErrNotFound
	}
	return found[0].Part, described(owner, id, found[0]), nil
}

// ArtifactNames implements [session.Artifacts].
func (s *Store) ArtifactNames(ctx context.Context, owner agent.Owner, id string) ([]string, error) {
	c := s.read(ctx)
	row, err := c.session(owner, id)
	if err != nil {
		return nil, err
	}
	names, err := collect(c, `SELECT DISTINCT name FROM artifacts WHERE app = ? AND usr = ? AND workflow_id IN (?, '')`, []any{owner.App, owner.User, row.WorkflowID},
		func(scan func(...any) error) (name string, err error) { return name, scan(&name) })
	slices.Sort(names) // databases have orders of their own
	return names, err
}

// ArtifactVersions implements [session.Artifacts].
func (s *Store) ArtifactVersions(ctx context.Context, owner agent.Owner, id, name string) ([]session.ArtifactVersion, error) {
	c := s.read(ctx)
	row, err := c.session(owner, id)
	if err != nil {
		return nil, err
	}
	return collect(c, `SELECT version, kind, mime, custom, created FROM artifacts WHERE app = ? AND usr = ? AND workflow_id = ? AND name = ? ORDER BY version`,
		[]any{owner.App, owner.User, scope(row, name), name}, func(scan func(...any) error) (session.ArtifactVersion, error) {
			a := artifact{NewArtifact: session.NewArtifact{Name: name}}
			var kind, mime, custom string
			if err := scan(&a.version, &kind, &mime, &custom, &a.created); err != nil {
				return session.ArtifactVersion{}, err
			}
			a.Part = assembled(kind, nil, "", mime)
			err := decode(custom, &a.Custom)
			return described(owner, id, a), err
		})
}

// ArtifactsOf implements [session.Artifacts].
func (s *Store) ArtifactsOf(ctx context.Context, owner agent.Owner, id, maker string) (map[string]int, error) {
	c := s.read(ctx)
	row, err := c.session(owner, id)
	if err != nil {
		return nil, err
	}
	type saved struct {
		name    string
		version int
	}
	all, err := collect(c, `SELECT name, MAX(version) FROM artifacts WHERE maker = ? AND app = ? AND usr = ? AND workflow_id IN (?, '') GROUP BY name`,
		[]any{maker, owner.App, owner.User, row.WorkflowID}, func(scan func(...any) error) (a saved, err error) { return a, scan(&a.name, &a.version) })
	if err != nil || len(all) == 0 {
		return nil, err
	}
	out := map[string]int{}
	for _, a := range all {
		out[a.name] = a.version
	}
	return out, nil
}

// DeleteArtifact implements [session.Artifacts].
func (s *Store) DeleteArtifact(ctx context.Context, owner agent.Owner, id, name string) error {
	return s.tx(ctx, func(c *conn) error {
		row, err := c.lockedSession(owner, id)
		if err != nil {
			return err
		}
		_, err = c.exec(`DELETE FROM artifacts WHERE app = ? AND usr = ? AND workflow_id = ? AND name = ?`, owner.App, owner.User, scope(row, name), name)
		return err
	})
}
