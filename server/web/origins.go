package web

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// Origins are further origins whose pages may call the API. The zero value has none.
type Origins struct {
	exact    []string
	patterns []*regexp.Regexp
}

const (
	// regexPrefix begins an entry that is a pattern, as in ADK's allow_origins.
	regexPrefix = "regex:"
	// maxOrigin bounds an origin, in bytes: a host name has 253 at most.
	maxOrigin = 300
)

// ParseOrigins reads entries in the form of ADK's allow_origins: an origin exactly as browsers write it, or "regex:" and a
// regular expression (RE2) that has to match the whole of one. The error names every entry that cannot be meant.
func ParseOrigins(entries []string) (Origins, error) {
	var out Origins
	var errs []error
	for _, entry := range entries {
		var err error
		if pattern, ok := strings.CutPrefix(entry, regexPrefix); ok {
			var re *regexp.Regexp
			if re, err = originPattern(pattern); err == nil {
				out.patterns = append(out.patterns, re)
			}
		} else if err = exactOrigin(entry); err == nil {
			out.exact = append(out.exact, entry)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%q: %w", entry, err))
		}
	}
	return out, errors.Join(errs...)
}

// Empty says that there is none.
func (o Origins) Empty() bool { return len(o.exact) == 0 && len(o.patterns) == 0 }

// Allow says whether pages of origin may call. What no browser writes is never allowed, whatever a pattern would match.
func (o Origins) Allow(origin string) bool {
	if slices.Contains(o.exact, origin) {
		return true
	}
	return len(o.patterns) > 0 && serialized(origin) &&
		slices.ContainsFunc(o.patterns, func(re *regexp.Regexp) bool { return re.MatchString(origin) })
}

// WebUIs are where ADK's web UI takes people back after a login, on those origins that are written out.
func (o Origins) WebUIs() []string {
	var out []string
	for _, origin := range o.exact {
		u, err := url.Parse(origin)
		if err == nil && (u.Scheme == "https" || loopbackHost(u.Hostname())) {
			out = append(out, origin+"/dev-ui/")
		}
	}
	return out
}

func loopbackHost(name string) bool {
	addr, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && addr.IsLoopback()
}

// exactOrigin says what is wrong with an origin that an operator wrote, and how browsers write it.
func exactOrigin(text string) error {
	if text == "*" {
		return errors.New("any page of any site could call; list the origins, or write regex: and a pattern")
	}
	if serialized(text) {
		return nil
	}
	u, err := url.Parse(text)
	if err == nil {
		if mended := u.Scheme + "://" + withoutUsualPort(strings.ToLower(u.Scheme), strings.ToLower(u.Host)); u.Host != "" && serialized(mended) {
			return fmt.Errorf("no browser writes an origin so; write %s", mended)
		}
	}
	return errors.New("is no origin such as http://localhost:4200: scheme and host in lower case and ASCII (xn--…), and a port if it is not the usual one")
}

func originPattern(text string) (*regexp.Regexp, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, errors.New("is no regular expression of RE2's syntax")
	}
	if bareDot(tree, false) {
		return nil, errors.New(`has a dot that stands for any character; write \. for a dot`)
	}
	re, err := regexp.Compile(`\A(?:` + text + `)\z`)
	if err != nil {
		return nil, errors.New("is no regular expression of RE2's syntax")
	}
	for _, foreign := range []string{"https://tarry-origin-probe.invalid", "http://tarry-origin-probe.invalid:8443", "null"} {
		if re.MatchString(foreign) {
			return nil, errors.New("any page of any site could call; name the host")
		}
	}
	return re, nil
}

// bareDot finds a dot that is not repeated: https://a.example is meant to have none.
func bareDot(re *syntax.Regexp, repeated bool) bool {
	switch re.Op {
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return !repeated
	case syntax.OpStar, syntax.OpPlus, syntax.OpRepeat:
		repeated = true
	default:
		repeated = false
	}
	return slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return bareDot(sub, repeated) })
}

// serialized says whether text is an origin of http or https as a browser writes it (RFC 6454 section 6.2): no user, path or
// usual port, in lower case, in ASCII.
func serialized(text string) bool {
	scheme, host, ok := strings.Cut(text, "://")
	if !ok || len(text) > maxOrigin || scheme != "http" && scheme != "https" || host != withoutUsualPort(scheme, host) {
		return false
	}
	if strings.HasPrefix(host, "[") {
		inner, rest, ok := strings.Cut(host[1:], "]")
		addr, err := netip.ParseAddr(inner)
		return ok && err == nil && addr.Is6() && addr.Zone() == "" && addr.String() == inner && (rest == "" || rest[0] == ':' && isPort(rest[1:]))
	}
	name, port, numbered := strings.Cut(host, ":")
	if numbered && !isPort(port) {
		return false
	}
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-_") == ""
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && strconv.FormatUint(n, 10) == text
}

func withoutUsualPort(scheme, host string) string {
	switch scheme {
	case "http":
		return strings.TrimSuffix(host, ":80")
	case "https":
		return strings.TrimSuffix(host, ":443")
	}
	return host
}
