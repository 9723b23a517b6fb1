package prom

import "net/http"

// allowOrigin lets scripts of pages from elsewhere read the answer.
func (h *Handler) allowOrigin(header http.Header, r *http.Request) {
	header.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" {
		return
	}
	header.Set("Access-Control-Allow-Headers", "Accept, Authorization, Content-Type, Origin")
	header.Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
	header.Set("Access-Control-Expose-Headers", "Date")
	switch re := h.o.CORSOrigin; {
	case re == nil:
		header.Set("Access-Control-Allow-Origin", "*")
	case re.FindString(origin) == origin:
		header.Set("Access-Control-Allow-Origin", origin)
	}
}
