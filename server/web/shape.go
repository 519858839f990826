package web

// MaxDepth is how deep objects and lists of a body may lie in each other: far beyond what people and programs send, and not
// so deep that a reader of what is stored, whatever it is written in, gives up.
const MaxDepth = 100

// TooDeep says whether a JSON text nests deeper than [MaxDepth]. It need not be valid.
func TooDeep(body []byte) bool {
	depth, text := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
