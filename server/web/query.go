package web

import (
	"net/http"
	"net/url"
	"strconv"
)

// MostRows is how many rows of a list one answer holds at most.
const MostRows = 1000

// Limit reads how many rows the caller of a list wants: from 1 to [MostRows], or usual if the query does not say. Errors are
// [*RequestError]: 400.
func Limit(query url.Values, usual int) (int, error) {
	text := query.Get("limit")
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MostRows {
		return 0, Refusal(http.StatusBadRequest, "limit is not a number from 1 to %d", MostRows)
	}
	return n, nil
}

// Truth reads a query parameter that is true or false; what cannot be read, or is missing, is false.
func Truth(r *http.Request, name string) bool {
	b, err := strconv.ParseBool(r.URL.Query().Get(name))
	return err == nil && b
}
