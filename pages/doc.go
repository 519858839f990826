// Package pages looks at every page that a person sees, in Chromium: on a phone and on a desk, by keyboard, as a screen reader
// is told it, dark and light. It has tests only, behind the build tag "pages"; `make pages` runs them and keeps screenshots in
// bin/pages.
//
// It must not test what pages do to a request: packages server/connect, server/accounts, server/signin and e2e do that.
package pages
