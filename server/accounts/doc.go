// Package accounts is the HTTP side of what a person can look up and take back: the connected accounts, as an API and as a
// page, and the audit log. It decides who may ask; what is asked for it gets through small interfaces. It never sees a token.
package accounts
