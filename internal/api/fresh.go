package api

import "strings"

// wantsFresh reports whether the client wants everything computed again: by the parameter cache=false or by
// the header Cache-Control.
func (r *Request) wantsFresh() bool {
	if r.Form.Get("cache") == "false" {
		return true
	}
	for directive := range strings.SplitSeq(strings.Join(r.Header.Values("Cache-Control"), ","), ",") {
		switch strings.ToLower(strings.TrimSpace(directive)) {
		case "no-cache", "no-store":
			return true
		}
	}
	return false
}
