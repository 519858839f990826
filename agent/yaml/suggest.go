package yaml

import (
	"fmt"
	"slices"
	"strings"
)

// instead says what to write instead of an unknown word: the nearest known one, or all of them.
func instead(word string, known []string) string {
	best, distance := "", len(word)/3+2
	for _, k := range known {
		if d := editDistance(strings.ToLower(word), strings.ToLower(k)); d < distance {
			best, distance = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	return listed(known)
}

func listed(known []string) string {
	if len(known) == 0 {
		return "none is known"
	}
	return "known: " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}

// editDistance is Levenshtein's, in bytes. Words longer than any key are far from everything.
func editDistance(a, b string) int {
	const longest = 64
	if len(a) > longest || len(b) > longest {
		return longest
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// snake turns ADK's camelCase into snake_case; snake_case stays.
func snake(key string) string {
	var b strings.Builder
	for i, r := range key {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return strings.TrimSuffix(b.String(), "_") // type_ is how Python spells type
}

// camel turns snake_case into genai's camelCase.
func camel(key string) string {
	parts := strings.Split(key, "_")
	for i, part := range parts[1:] {
		if part != "" {
			parts[i+1] = strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return strings.Join(parts, "")
}
