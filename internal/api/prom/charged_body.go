package prom

import (
	"errors"
	"io"

	"github.com/shaledb/shale/internal/model"
)

// bodyBytes is the memory of a body, for each byte that was read: it grows into larger arrays, and a form is copied
// into a string and its parameters.
const bodyBytes = 4

// chargedBody charges a body as it is read. Bodies are read before the request waits for its turn, so without the charge
// only the number of connections would bound them.
type chargedBody struct {
	io.ReadCloser
	quota *model.Quota
}

// Read fails with the error of the quota if there is no room for what was read.
func (b *chargedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		if refused := b.quota.TakeBytes(bodyBytes * int64(n)); refused != nil {
			return 0, refused
		}
	}
	return n, err
}

// isRefusal reports whether reading a body ended for want of room.
func isRefusal(err error) bool {
	return errors.Is(err, model.ErrLimit) || errors.Is(err, model.ErrTransient)
}
