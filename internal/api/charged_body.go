package api

import (
	"errors"
	"io"

	"github.com/shaledb/shale/internal/model"
)

// BodyBytes is the memory of a body, for each byte that was read: it grows into larger arrays, and a form is copied
// into a string and its parameters.
const BodyBytes = 4

// ChargedBody charges a body to a quota as it is read. Bodies are read before the request waits for its turn, so without
// the charge only the number of connections would bound them.
type ChargedBody struct {
	io.ReadCloser
	Quota *model.Quota
}

// Read fails with the error of the quota if there is no room for what was read.
func (b *ChargedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		if refused := b.Quota.TakeBytes(BodyBytes * int64(n)); refused != nil {
			return 0, refused
		}
	}
	return n, err
}

// IsRefusal reports whether reading a body ended for want of room.
func IsRefusal(err error) bool {
	return errors.Is(err, model.ErrLimit) || errors.Is(err, model.ErrTransient)
}
