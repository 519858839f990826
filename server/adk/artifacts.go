package adk

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/genai"

	"tarry/server/web"
	"tarry/session"
)

// mountArtifacts adds the routes of artifacts. What they hold was sent by anybody: it goes out as JSON and as nothing else.
func (h *Handler) mountArtifacts(mux *http.ServeMux) {
	const artifacts = "/apps/{app}/users/{user}/sessions/{session}/artifacts"
	mux.HandleFunc("GET "+artifacts, h.listArtifacts)
	mux.HandleFunc("POST "+artifacts, h.saveArtifact)
	// Names have slashes, and nothing can follow such a wildcard: what stands behind the name is read by parseArtifact.
	mux.HandleFunc("GET "+artifacts+"/{name...}", h.getArtifact)
	mux.HandleFunc("DELETE "+artifacts+"/{name...}", h.deleteArtifact)
}

func (h *Handler) listArtifacts(w http.ResponseWriter, r *http.Request) {
	h.artifacts(func(r *http.Request) (any, error) {
		owner, err := h.owner(r)
		if err != nil {
			return nil, err
		}
		names, err := h.Artifacts.ArtifactNames(r.Context(), owner, r.PathValue("session"))
		if err != nil {
			return nil, noSession(err, r.PathValue("session"))
		}
		return append([]string{}, names...), nil
	})(w, r)
}

func (h *Handler) artifacts(f func(*http.Request) (any, error)) http.HandlerFunc {
	return web.Answer(h.Logger, http.StatusOK, f)
}

func (h *Handler) saveArtifact(w http.ResponseWriter, r *http.Request) {
	h.artifacts(func(r *http.Request) (any, error) {
		owner, err := h.owner(r)
		if err != nil {
			return nil, err
		}
		body, err := readBody(w, r)
		if err != nil {
			return nil, err
		}
		n, err := decodeArtifact(body)
		if err != nil {
			return nil, err
		}
		out, err := h.Artifacts.SaveArtifact(r.Context(), owner, r.PathValue("session"), n)
		switch {
		case errors.Is(err, session.ErrArtifactSize):
			return nil, web.Refusal(http.StatusRequestEntityTooLarge, "%v", err)
		case errors.Is(err, session.ErrArtifact):
			return nil, invalid("%v", err)
		case err != nil:
			return nil, noSession(err, r.PathValue("session"))
		}
		return out, nil
	})(w, r)
}

// decodeArtifact reads ADK's SaveArtifactRequest.
func decodeArtifact(body json.RawMessage) (session.NewArtifact, error) {
	var out session.NewArtifact
	in, err := object(body)
	if err != nil {
		return out, invalid("the body is not a JSON object")
	}
	if err := decode(in["filename"], &out.Name); err != nil {
		return out, invalid("filename is not a string")
	}
	if out.Name == "" {
		return out, invalid("filename is missing; name the artifact, such as report.txt")
	}
	if err := decode(in["customMetadata"], &out.Custom); err != nil {
		return out, invalid("customMetadata is not an object")
	}
	fields, err := object(in["artifact"])
	if err == nil {
		out.Part, err = decodePart(fields)
	}
	if err == nil {
		err = labelled(out.Part, fields)
	}
	if err != nil {
		return out, invalid("artifact is not a text, inlineData or fileData as ADK has them")
	}
	return out, nil
}

// labelled adds the names that files have for people.
func labelled(p *genai.Part, fields map[string]json.RawMessage) error {
	for field, to := range map[string]*string{"inlineData": label(p, true), "fileData": label(p, false)} {
		if to == nil {
			continue
		}
		data, err := object(fields[field])
		if err != nil {
			return err
		}
		if err := decode(data["displayName"], to); err != nil {
			return err
		}
	}
	return nil
}

func label(p *genai.Part, inline bool) *string {
	switch {
	case p == nil:
	case inline && p.InlineData != nil:
		return &p.InlineData.DisplayName
	case !inline && p.FileData != nil:
		return &p.FileData.DisplayName
	}
	return nil
}

// artifactPath is what the part of a path behind artifacts/ names.
type artifactPath struct {
	name string
	// versions says that all versions are meant; else version is the one, or [session.Latest].
	versions, metadata bool
	version            int
}

func parseArtifact(rest, query string) (artifactPath, error) {
	const versions, metadata = "versions", "metadata"
	segments := strings.Split(rest, "/")
	last := func(i int) string {
		if i >= len(segments) { // the name has at least one
			return ""
		}
		return segments[len(segments)-i]
	}
	out := artifactPath{version: session.Latest}
	cut, version := 0, query
	switch {
	case last(1) == metadata && last(3) == versions:
		cut, version, out.metadata = 3, last(2), true
	case last(1) == metadata && last(2) == versions:
		cut, out.versions, out.metadata = 2, true, true
	case last(2) == versions:
		cut, version = 2, last(1)
	case last(1) == versions:
		cut, out.versions = 1, true
	}
	out.name = strings.Join(segments[:len(segments)-cut], "/")
	if err := session.CheckArtifactName(out.name); err != nil {
		return out, invalid("%v", err)
	}
	if version == "" || version == "latest" {
		return out, nil
	}
	n, err := strconv.Atoi(version)
	if err != nil {
		return out, web.Refusal(http.StatusUnprocessableEntity, "version %q is neither a number nor latest", brief(version))
	}
	if n < 0 {
		return out, noArtifact(out.name)
	}
	out.version = n
	return out, nil
}

func noArtifact(name string) error {
	return notFound("artifact %s does not exist in this session", name)
}

func (h *Handler) getArtifact(w http.ResponseWriter, r *http.Request) {
	h.artifacts(func(r *http.Request) (any, error) {
		owner, err := h.owner(r)
		if err != nil {
			return nil, err
		}
		in, err := parseArtifact(r.PathValue("name"), r.URL.Query().Get("version"))
		if err != nil {
			return nil, err
		}
		id := r.PathValue("session")
		if in.versions {
			all, err := h.Artifacts.ArtifactVersions(r.Context(), owner, id, in.name)
			if err != nil {
				return nil, noSession(err, id)
			}
			if in.metadata {
				return append([]session.ArtifactVersion{}, all...), nil
			}
			numbers := make([]int, 0, len(all))
			for _, v := range all {
				numbers = append(numbers, v.Version)
			}
			return slices.Clip(numbers), nil
		}
		part, version, err := h.Artifacts.Artifact(r.Context(), owner, id, in.name, in.version)
		switch {
		case errors.Is(err, session.ErrNotFound):
			return nil, noArtifact(in.name)
		case err != nil:
			return nil, fmt.Errorf("load artifact: %w", err)
		case in.metadata:
			return version, nil
		}
		return part, nil
	})(w, r)
}

func (h *Handler) deleteArtifact(w http.ResponseWriter, r *http.Request) {
	h.artifacts(func(r *http.Request) (any, error) {
		owner, err := h.owner(r)
		if err != nil {
			return nil, err
		}
		name, id := r.PathValue("name"), r.PathValue("session")
		if err := session.CheckArtifactName(name); err != nil {
			return nil, invalid("%v", err)
		}
		if err := h.Artifacts.DeleteArtifact(r.Context(), owner, id, name); err != nil {
			return nil, noSession(err, id)
		}
		return nil, nil //nolint:nilnil // ADK answers null
	})(w, r)
}
