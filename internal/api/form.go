package api

import (
	"mime"
	"net/http"
)

// ParseForm reads a form of either encoding, of at most maxBytes. What is neither is no form, and its parameters are those
// of the URL.
func ParseForm(r *http.Request, maxBytes int64) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && kind == "multipart/form-data" && r.Method == http.MethodPost {
		// All of it fits into memory, so that no file is made of what claims to be one.
		return r.ParseMultipartForm(maxBytes)
	}
	return r.ParseForm()
}
