package api

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/shaledb/shale/internal/model"
)

// readForm reads the parameters from the URL and from the form of a POST, in either encoding. A body of
// another type is ignored.
func readForm(r *http.Request, maxBytes int64) error {
	err := parseForm(r, maxBytes)
	if err == nil {
		return nil
	}
	if e := bodyError("form", err); e != nil {
		return e
	}
	return &FormError{err}
}

func parseForm(r *http.Request, maxBytes int64) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && kind == "multipart/form-data" && r.Method == http.MethodPost {
		// maxBytes bounds the body too, so all of it stays in memory and no part becomes a file.
		return r.ParseMultipartForm(maxBytes)
	}
	return r.ParseForm()
}

// readContent reads the whole body.
func readContent(r *http.Request) ([]byte, error) {
	content, err := io.ReadAll(r.Body)
	if err == nil {
		return content, nil
	}
	if e := bodyError("body", err); e != nil {
		return nil, e
	}
	return nil, &Error{Status: http.StatusBadRequest, Err: fmt.Errorf("reading the body: %w", err)}
}

// bodyError returns the error for a body that is too large or that the quota has no room for, and nil for any
// other.
func bodyError(what string, err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return &Error{
			Status: http.StatusRequestEntityTooLarge, Err: fmt.Errorf("the %s is larger than %d bytes", what, tooLarge.Limit),
		}
	case errors.Is(err, model.ErrLimit), errors.Is(err, model.ErrTransient):
		return err
	}
	return nil
}

// HeldPerByte is the memory for each byte of a body: reading doubles the buffer as it grows, and a form is
// copied into a string and into its parameters.
const HeldPerByte = 4

// chargedBody charges a body to a quota while it is read. Bodies are read before the request waits for its
// turn, so without the charge only the number of connections would bound them.
type chargedBody struct {
	io.ReadCloser
	quota *model.Quota
}

// Read fails with the error of the quota if it has no room for the bytes.
func (b *chargedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		if refused := b.quota.TakeBytes(HeldPerByte * int64(n)); refused != nil {
			return 0, refused
		}
	}
	return n, err
}
