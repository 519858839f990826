// Package webui serves a build of the ADK web UI from a folder that an operator names, at /dev-ui/. Nothing of the UI is part
// of this module: the package knows what such a build looks like, which headers it needs, and no more.
//
// It must not serve anything that was not a plain file of the folder when the server started, and it must not talk to the
// API: the UI does that in the browser, with that person's session.
package webui
