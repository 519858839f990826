package demo

import "net/http"

// revoke is RFC 7009: unknown tokens are fine, and a refresh token takes its whole grant along.
func (p *Provider) revoke(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	err := r.ParseForm()
	note(w, r.PostForm, "")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.journal.counts.Revocations++
	if err != nil || r.PostForm.Get("token") == "" {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_request"})
		return
	}
	client, ok := p.authenticate(r, r.PostForm)
	if !ok {
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	token := r.PostForm.Get("token")
	if t, ok := p.refresh[token]; ok && t.grant.clientID == client.ID {
		t.grant.revoked = true
	}
	if t, ok := p.access[token]; ok && t.grant.clientID == client.ID {
		t.revoked = true
	}
	w.WriteHeader(http.StatusOK)
}
