package session

import (
	"context"
	"strings"
	"unicode"

	"google.golang.org/genai"

	"tarry/agent"
)

// Bounds of memory.
const (
	// MaxMemories is how many memories a search finds at most, as in ADK.
	MaxMemories = 10
	// MaxMemory is how many bytes of text are kept for one user of an app. What was added first is forgotten first.
	MaxMemory = 2 << 20
	// maxMemoryText is the most bytes of one memory; more is cut off.
	maxMemoryText = 16 << 10
	maxQueryWords = 64
)

// MemoryEntry is what somebody said in a session that was added to memory.
type MemoryEntry struct {
	// Event is the id of the event that said it.
	Event  string
	Author string
	Time   float64 // seconds since 1970
	// Text is what was said; calls of tools, their results and files are not remembered.
	Text string
}

// Content is the memory in ADK's shape.
func (m MemoryEntry) Content() *genai.Content {
	role := genai.Role(genai.RoleModel)
	if m.Author == agent.UserAuthor {
		role = genai.RoleUser
	}
	return genai.NewContentFromText(m.Text, role)
}

// Memory keeps what was said in sessions, for one user of one app, and finds it by its words. It is safe for concurrent use by
// several processes.
type Memory interface {
	// Remember adds what was said in a session, in place of what was added of it before. It goes with the session.
	Remember(ctx context.Context, owner agent.Owner, session string) error
	// Recall finds memories that share words with a query: those that share most come first, and among equals the older.
	Recall(ctx context.Context, owner agent.Owner, query string) ([]MemoryEntry, error)
}

// Memories is what is remembered of a view: what people and agents said in words, thoughts left out. What agents behind tools
// say is part of no conversation.
func Memories(view []*Record) []MemoryEntry {
	var out []MemoryEntry
	for _, r := range view {
		text := strings.TrimSpace(r.Text())
		if text == "" || r.Partial || r.IsolationScope != "" || r.Kind == KindNotice || r.Kind == KindReminder || r.Kind == KindInterim {
			continue
		}
		out = append(out, MemoryEntry{Event: r.ID, Author: r.Author, Time: r.Timestamp, Text: cut(text, maxMemoryText)})
	}
	return out
}

// Words are the words of a text by which it is found, each once and between spaces: runs of letters, digits and underscores in
// lower case and, of one that mixes scripts, its runs within and without ASCII: in languages without spaces a Latin word stands
// right beside others. The rules are ADK's.
func Words(text string) string {
	var b strings.Builder
	b.WriteByte(' ')
	seen := map[string]bool{}
	add := func(word string) {
		if !seen[word] {
			seen[word] = true
			b.WriteString(word)
			b.WriteByte(' ')
		}
	}
	for _, word := range words(text) {
		add(word)
		from := 0
		for i := range word {
			if i > from && (word[i] < 0x80) != (word[from] < 0x80) {
				add(word[from:i])
				from = i
			}
		}
		if from > 0 {
			add(word[from:])
		}
	}
	return b.String()
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r)
	})
}

// Query is what is looked for: parts of what [Words] gives.
type Query struct{ parts []string }

// NewQuery reads the words of a text; a long one's first are enough. A word that is not ASCII may be a part of another.
func NewQuery(text string) Query {
	seen := map[string]bool{}
	var q Query
	for _, word := range words(text) {
		if seen[word] || len(q.parts) == maxQueryWords {
			continue
		}
		seen[word] = true
		if !strings.ContainsFunc(word, func(r rune) bool { return r >= 0x80 }) {
			word = " " + word + " "
		}
		q.parts = append(q.parts, word)
	}
	return q
}

// Empty says that nothing is looked for.
func (q Query) Empty() bool { return len(q.parts) == 0 }

// Matches counts the words of q among those of a text, as [Words] has them.
func (q Query) Matches(in string) (n int) {
	for _, part := range q.parts {
		if strings.Contains(in, part) {
			n++
		}
	}
	return n
}
