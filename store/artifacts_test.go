package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/session"
)

func (k *kit) save(row session.Session, name string, p *genai.Part) int {
	k.Helper()
	v, err := k.s.SaveArtifact(k.ctx, row.Owner, row.ID, session.NewArtifact{Name: name, Part: p})
	require.NoError(k, err)
	return v.Version
}

// makes saves on behalf of a call or an event.
func (k *kit) makes(row session.Session, maker, name string, nth int, text string) int {
	k.Helper()
	v, err := k.s.SaveArtifact(k.ctx, row.Owner, row.ID, session.NewArtifact{Name: name, Part: genai.NewPartFromText(text), Maker: maker, Nth: nth})
	require.NoError(k, err)
	return v.Version
}

func (k *kit) artifact(row session.Session, name string, version int) *genai.Part {
	k.Helper()
	p, v, err := k.s.Artifact(k.ctx, row.Owner, row.ID, name, version)
	require.NoError(k, err)
	if version != session.Latest {
		require.Equal(k, version, v.Version)
	}
	return p
}

func (k *kit) artifacts(row session.Session) []string {
	k.Helper()
	names, err := k.s.ArtifactNames(k.ctx, row.Owner, row.ID)
	require.NoError(k, err)
	return names
}

func artifactCases() []testCase {
	odd := genai.NewPartFromText("a\x00b \u00e9\u0301 \U0001F4BE" + strings.Repeat("x", 1<<20))
	blob := &genai.Part{InlineData: &genai.Blob{Data: []byte{0, 1, 0xff, 0xfe, '\'', '"'}, MIMEType: "image/png", DisplayName: "a photo"}}
	file := &genai.Part{FileData: &genai.FileData{FileURI: "gs://bucket/a b?c#d", MIMEType: "text/csv"}}
	return []testCase{
		{"artifacts/what comes back", func(k *kit) {
			row := k.session(ann, "s")
			for name, p := range map[string]*genai.Part{"odd.txt": odd, "img/a.png": blob, "user:shared/ü.csv": file, "empty": {InlineData: &genai.Blob{Data: []byte{}, MIMEType: "a/b"}}} {
				require.Zero(k, k.save(row, name, p))
				require.Equal(k, p, k.artifact(row, name, session.Latest), name)
				require.Equal(k, p, k.artifact(row, name, 0), name)
			}
			require.Equal(k, []string{"empty", "img/a.png", "odd.txt", "user:shared/ü.csv"}, k.artifacts(row))
		}},
		{"artifacts/what is known of a version", func(k *kit) {
			row := k.session(ann, "s")
			custom := map[string]any{"by": "ann", "pages": 3.0, "deep": map[string]any{"a": []any{nil, true}}}
			v, err := k.s.SaveArtifact(k.ctx, ann, "s", session.NewArtifact{Name: "a b/c?.txt", Part: genai.NewPartFromText("one"), Custom: custom})
			require.NoError(k, err)
			want := session.ArtifactVersion{
				Version: 0, URI: "artifact://apps/planner/users/ann/sessions/s/artifacts/a%20b/c%3F.txt/versions/0",
				Custom: custom, Created: session.Seconds(k.clock.now()), MIME: "text/plain",
			}
			require.Equal(k, want, v)
			_, again, err := k.s.Artifact(k.ctx, ann, "s", "a b/c?.txt", session.Latest)
			require.NoError(k, err)
			require.Equal(k, want, again)
			k.save(row, "a b/c?.txt", blob)
			all, err := k.s.ArtifactVersions(k.ctx, ann, "s", "a b/c?.txt")
			require.NoError(k, err)
			require.Len(k, all, 2)
			require.Equal(k, want, all[0])
			require.Equal(k, "image/png", all[1].MIME)
			require.Equal(k, map[string]any{}, all[1].Custom)
			v, err = k.s.SaveArtifact(k.ctx, ann, "s", session.NewArtifact{Name: "user:x", Part: genai.NewPartFromText("one")})
			require.NoError(k, err)
			require.Equal(k, "artifact://apps/planner/users/ann/artifacts/user:x/versions/0", v.URI)
		}},
		{"artifacts/versions count from 0 and start again after a deletion", func(k *kit) {
			row := k.session(ann, "s")
			for i := range 3 {
				require.Equal(k, i, k.save(row, "a", genai.NewPartFromText(fmt.Sprint(i))))
			}
			require.Equal(k, "1", k.artifact(row, "a", 1).Text)
			require.Equal(k, "2", k.artifact(row, "a", session.Latest).Text)
			for _, version := range []int{3, -2} {
				_, _, err := k.s.Artifact(k.ctx, ann, "s", "a", version)
				require.ErrorIs(k, err, session.ErrNotFound)
			}
			k.save(row, "b", odd)
			require.NoError(k, k.s.DeleteArtifact(k.ctx, ann, "s", "a"))
			require.NoError(k, k.s.DeleteArtifact(k.ctx, ann, "s", "a"), "again")
			require.Equal(k, []string{"b"}, k.artifacts(row))
			all, err := k.s.ArtifactVersions(k.ctx, ann, "s", "a")
			require.NoError(k, err)
			require.Empty(k, all)
			require.NotNil(k, all)
			require.Zero(k, k.save(row, "a", odd))
		}},
		{"artifacts/whose they are", func(k *kit) {
			s, t := k.session(ann, "s"), k.session(ann, "t")
			k.save(s, "own", odd)
			k.save(s, "user:mine", odd)
			require.Equal(k, []string{"own", "user:mine"}, k.artifacts(s))
			require.Equal(k, []string{"user:mine"}, k.artifacts(t), "the user's are seen in all sessions")
			require.Equal(k, 1, k.save(t, "user:mine", genai.NewPartFromText("newer")))
			require.Equal(k, "newer", k.artifact(s, "user:mine", session.Latest).Text)
			for _, other := range []agent.Owner{bob, sameName} {
				row := k.session(other, "s")
				require.Empty(k, k.artifacts(row))
				for _, name := range []string{"own", "user:mine"} {
					_, _, err := k.s.Artifact(k.ctx, other, "s", name, session.Latest)
					require.ErrorIs(k, err, session.ErrNotFound)
					all, err := k.s.ArtifactVersions(k.ctx, other, "s", name)
					require.NoError(k, err)
					require.Empty(k, all)
					require.NoError(k, k.s.DeleteArtifact(k.ctx, other, "s", name))
				}
			}
			require.Equal(k, odd, k.artifact(s, "own", 0))
			require.Len(k, k.artifacts(t), 1)
			// A session of somebody else is none.
			k.session(ann, "only-hers")
			_, err := k.s.SaveArtifact(k.ctx, bob, "only-hers", session.NewArtifact{Name: "user:x", Part: odd})
			require.ErrorIs(k, err, session.ErrNotFound)
			_, _, err = k.s.Artifact(k.ctx, bob, "only-hers", "user:x", session.Latest)
			require.ErrorIs(k, err, session.ErrNotFound)
			_, err = k.s.ArtifactNames(k.ctx, bob, "only-hers")
			require.ErrorIs(k, err, session.ErrNotFound)
			_, err = k.s.ArtifactVersions(k.ctx, bob, "only-hers", "user:x")
			require.ErrorIs(k, err, session.ErrNotFound)
			_, err = k.s.ArtifactsOf(k.ctx, bob, "only-hers", "m")
			require.ErrorIs(k, err, session.ErrNotFound)
			require.ErrorIs(k, k.s.DeleteArtifact(k.ctx, bob, "only-hers", "user:x"), session.ErrNotFound)
		}},
		{"artifacts/go with the session, but for the user's", func(k *kit) {
			s, t := k.session(ann, "s"), k.session(ann, "t")
			k.save(s, "own", odd)
			k.save(s, "user:mine", odd)
			k.save(t, "other", odd)
			require.NoError(k, k.s.Delete(k.ctx, ann, "s"))
			require.Equal(k, []string{"other", "user:mine"}, k.artifacts(t))
			require.Equal(k, []string{"user:mine"}, k.artifacts(k.session(ann, "s")), "a session of the same name has none of its own")
		}},
		{"artifacts/a repeated attempt makes no second version", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, theRun, "m", nil, "c1", "c2")
			require.Zero(k, k.makes(row, "c1", "a", 0, "first attempt"))
			require.Equal(k, 1, k.makes(row, "c1", "a", 1, "first attempt, second save"))
			require.Equal(k, 2, k.makes(row, "c2", "a", 0, "another call"))
			require.Zero(k, k.makes(row, "c1", "a", 0, "second attempt"), "the same version")
			require.Equal(k, "second attempt", k.artifact(row, "a", 0).Text, "what the attempt that goes on has saved")
			require.Zero(k, k.makes(row, "c1", "user:b", 0, "x"))
			of, err := k.s.ArtifactsOf(k.ctx, ann, "s", "c1")
			require.NoError(k, err)
			require.Equal(k, map[string]int{"a": 1, "user:b": 0}, of)
			_, err = k.s.Append(k.ctx, answerOf(row, theRun, "c1", "r1", "m"))
			require.NoError(k, err)
			require.Zero(k, k.makes(row, "c1", "a", 0, "an attempt that came back too late"))
			require.Equal(k, "second attempt", k.artifact(row, "a", 0).Text)
			_, err = k.s.SaveArtifact(k.ctx, ann, "s", session.NewArtifact{Name: "late", Part: odd, Maker: "c1"})
			require.ErrorIs(k, err, session.ErrAnswered)
			require.Equal(k, []string{"a", "user:b"}, k.artifacts(row))
			none, err := k.s.ArtifactsOf(k.ctx, ann, "s", "c9")
			require.NoError(k, err)
			require.Empty(k, none)
		}},
		{"artifacts/an event that is stored saves nothing more", func(k *kit) {
			row := k.session(ann, "s")
			require.Zero(k, k.makes(row, "e1", "a", 0, "before"))
			k.append(row, theRun, model("e1"))
			require.Zero(k, k.makes(row, "e1", "a", 0, "after"))
			require.Equal(k, "before", k.artifact(row, "a", 0).Text)
		}},
		{"artifacts/what is refused", func(k *kit) {
			row := k.session(ann, "s")
			text := genai.NewPartFromText("x")
			for name, n := range map[string]session.NewArtifact{
				"no name":         {Part: text},
				"nothing of user": {Name: "user:", Part: text},
				"dots":            {Name: "a/../b", Part: text},
				"slash at end":    {Name: "a/", Part: text},
				"absolute":        {Name: "/a", Part: text},
				"route":           {Name: "a/Versions/0", Part: text},
				"backslash":       {Name: `a\b`, Part: text},
				"control":         {Name: "a\nb", Part: text},
				"not UTF-8":       {Name: "a\xff", Part: text},
				"long name":       {Name: strings.Repeat("n", session.MaxArtifactName+1), Part: text},
				"no part":         {Name: "a"},
				"empty part":      {Name: "a", Part: &genai.Part{}},
				"a call":          {Name: "a", Part: &genai.Part{FunctionCall: &genai.FunctionCall{Name: "f"}}},
				"two contents":    {Name: "a", Part: &genai.Part{Text: "x", InlineData: blob.InlineData}},
				"a reference":     {Name: "a", Part: &genai.Part{FileData: &genai.FileData{FileURI: "artifact://apps/planner/users/bob/artifacts/user:x/versions/0"}}},
				"no URI":          {Name: "a", Part: &genai.Part{FileData: &genai.FileData{MIMEType: "a/b"}}},
				"not JSON":        {Name: "a", Part: text, Custom: map[string]any{"f": func() {}}},
			} {
				_, err := k.s.SaveArtifact(k.ctx, ann, "s", n)
				require.ErrorIs(k, err, session.ErrArtifact, name)
				require.NotErrorIs(k, err, session.ErrArtifactSize, name)
			}
			for name, n := range map[string]session.NewArtifact{
				"large":          {Name: "a", Part: genai.NewPartFromText(strings.Repeat("x", session.MaxArtifact+1))},
				"large metadata": {Name: "a", Part: text, Custom: map[string]any{"x": strings.Repeat("x", session.MaxArtifactMetadata)}},
			} {
				_, err := k.s.SaveArtifact(k.ctx, ann, "s", n)
				require.ErrorIs(k, err, session.ErrArtifactSize, name)
			}
			require.Empty(k, k.artifacts(row))
		}},
		{"artifacts/no more than is kept for a user", func(k *kit) {
			k.s.LimitArtifacts(10 << 10)
			s, t, other := k.session(ann, "s"), k.session(ann, "t"), k.session(bob, "s")
			four := genai.NewPartFromText(strings.Repeat("x", 4<<10-1100))
			k.save(s, "a", four)
			k.save(t, "user:b", four)
			full := func(row session.Session, p *genai.Part) error {
				_, err := k.s.SaveArtifact(k.ctx, row.Owner, row.ID, session.NewArtifact{Name: "c", Part: p})
				return err
			}
			require.ErrorIs(k, full(t, four), session.ErrArtifactSize)
			require.NoError(k, full(other, four), "of another user")
			require.NoError(k, k.s.DeleteArtifact(k.ctx, ann, "s", "a"))
			require.NoError(k, full(t, four))
			for i := range 3 { // empty ones count as well
				err := full(s, &genai.Part{InlineData: &genai.Blob{}})
				if i < 2 {
					require.NoError(k, err)
				} else {
					require.ErrorIs(k, err, session.ErrArtifactSize)
				}
			}
		}},
		{"artifacts/no two savers get the same version", func(k *kit) {
			row := k.session(ann, "s")
			k.session(ann, "t")
			const savers, each = 6, 10
			var group sync.WaitGroup
			got := make(chan int, savers*each)
			errs := make(chan error, savers*each)
			for i := range savers {
				s := k.handle()
				group.Go(func() {
					id := []string{"s", "t"}[i%2] // a user: name is the same in both
					for range each {
						v, err := s.SaveArtifact(context.WithoutCancel(k.ctx), ann, id, session.NewArtifact{Name: "user:n", Part: genai.NewPartFromText("x")})
						got <- v.Version
						errs <- err
					}
				})
			}
			group.Wait()
			close(got)
			close(errs)
			for err := range errs {
				require.NoError(k, err)
			}
			seen := map[int]bool{}
			for v := range got {
				require.False(k, seen[v], "version %d twice", v)
				seen[v] = true
			}
			all, err := k.s.ArtifactVersions(k.ctx, ann, row.ID, "user:n")
			require.NoError(k, err)
			require.Len(k, all, savers*each)
			for i, v := range all {
				require.Equal(k, i, v.Version)
			}
		}},
		{"artifacts/saved while their session is deleted", func(k *kit) {
			for range 5 {
				row := k.session(ann, "s")
				var group sync.WaitGroup
				for _, s := range []int{0, 1} {
					h := k.handle()
					group.Go(func() {
						for range 5 {
							_, _ = h.SaveArtifact(context.WithoutCancel(k.ctx), ann, "s", session.NewArtifact{Name: fmt.Sprint("a", s), Part: genai.NewPartFromText("x")})
						}
					})
				}
				require.NoError(k, k.s.Delete(k.ctx, ann, row.ID))
				group.Wait()
				require.Equal(k, 0, k.rows([]string{"artifacts"})["artifacts"], "nobody's artifacts are left")
			}
		}},
	}
}
