package web

import "strings"

// CanonicalHost is a host as a browser writes it in Host and Origin: lower case, without the scheme's usual port.
func CanonicalHost(scheme, host string) string {
	host = strings.ToLower(host)
	usual := ":80"
	if scheme == "https" {
		usual = ":443"
	}
	return strings.TrimSuffix(host, usual)
}
