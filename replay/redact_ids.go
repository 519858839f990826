package replay

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// id returns what takes the place of an id, and in the first pass the id itself.
func (r *redactor) id(id string) string {
	if id == "" {
		return ""
	}
	if r.collecting {
		r.seen[id] = ""
		return id
	}
	return r.seen[id]
}

// assign numbers the ids in their order, so that code which sorts them decides as it did.
func (r *redactor) assign() {
	for i, id := range slices.Sorted(maps.Keys(r.seen)) {
		r.seen[id] = shaped(id, i+1)
	}
}

const (
	digits       = 12
	workflowPart = 4 // tarry, app, user, session
)

// shaped returns the n-th id in the form that the id it replaces has, as far as a reader needs it.
func shaped(id string, n int) string {
	number := fmt.Sprintf("%0*d", digits, n)
	switch parts := strings.Split(id, "/"); {
	case regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(id):
		return "00000000-0000-" + id[14:15] + "000-8000-" + number
	case strings.HasPrefix(id, "adk-"):
		return "adk-" + number
	case len(parts) == workflowPart && parts[0] == "tarry":
		return "tarry/" + parts[1] + "/user/" + number
	default:
		return "id-" + number
	}
}
