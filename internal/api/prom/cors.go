package prom

import (
	"net/http"
	"regexp"
)

// whole makes an expression match whole texts only; nil stays nil.
func whole(re *regexp.Regexp) *regexp.Regexp {
	if re == nil {
		return nil
	}
	return regexp.MustCompile("^(?:" + re.String() + ")$")
}

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
	switch {
	case h.origin == nil:
		header.Set("Access-Control-Allow-Origin", "*")
	case h.origin.MatchString(origin):
		header.Set("Access-Control-Allow-Origin", origin)
	}
}
