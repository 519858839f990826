package stack

import "strings"

// merge joins environments; of two settings of one variable the later stays.
func merge(lists ...[]string) []string {
	var out []string
	at := map[string]int{}
	for _, list := range lists {
		for _, setting := range list {
			name, _, _ := strings.Cut(setting, "=")
			if i, ok := at[name]; ok {
				out[i] = setting
				continue
			}
			at[name] = len(out)
			out = append(out, setting)
		}
	}
	return out
}
