package server

import (
	"slices"

	"tarry/server/webui"
)

// webUI makes the handler of the web UI, and its address one that the connect page sends browsers back to; nil where there is none.
func (s *Server) webUI() *webui.Handler {
	if s.WebUI == nil {
		return nil
	}
	ui := webui.New(s.WebUI, s.PublicURL)
	s.ReturnTo = append(slices.Clone(s.ReturnTo), ui.Address())
	return ui
}
