package server

import (
	"context"
	"fmt"
)

// pollDevices asks providers about logins that go on on other devices; how often each is asked, the login decides.
func (s *Server) pollDevices(ctx context.Context) error {
	n, err := s.Parts.Logins.PollDevices(ctx)
	if n > 0 {
		s.dispatcher.Wake()
	}
	if err != nil {
		return fmt.Errorf("poll: %w", err)
	}
	return nil
}
