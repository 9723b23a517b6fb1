package body

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// firstStep is how many bytes of a body are reserved before the first of them has arrived.
const firstStep = 16 << 10

// Admitter reserves bytes of the budget for requests.
type Admitter interface {
	Admit(ctx context.Context, tenant string, bytes int64) (*write.Grant, error)
}

// Read reads the body of a request into in and returns the reservation of the request. Every byte is
// reserved before it is read, and the reservation at most doubles what has arrived: a connection that
// announces a large body and sends nothing holds 16 KiB. The body may not exceed limit; 0 means
// MaxDecoded. Either the grant or the error is nil.
func (c *Codec) Read(r *http.Request, a Admitter, tenant string, in *Buffer, limit int64) (_ *write.Grant, err error) {
	if limit <= 0 || limit > MaxDecoded {
		limit = MaxDecoded
	}
	announced := r.ContentLength // -1: unknown
	if announced > limit {
		return nil, c.tooLarge("body", announced, "limits.body-bytes", limit)
	}
	// One byte over the limit is read of a body of unknown length, to see that it is too large.
	most := limit + 1
	if announced >= 0 {
		most = announced
	}
	first := min(firstStep, most)
	grant, err := a.Admit(r.Context(), tenant, first)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			grant.Release()
		}
	}()
	if announced > first {
		if err := grant.Expect(announced - first); err != nil {
			return nil, err
		}
	}
	in.Bytes = in.Bytes[:0]
	in.reach(int(first))
	for {
		begin := len(in.Bytes)
		n, err := io.ReadFull(r.Body, in.Bytes[begin:in.reached])
		in.Bytes = in.Bytes[:begin+n]
		switch read := int64(len(in.Bytes)); {
		case announced < 0 && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
			// A chunked body that breaks off has an unexpected end too. Its content is then cut off, and
			// decoding reports that.
			return grant, nil
		case err != nil && announced < 0:
			return nil, fmt.Errorf("%w: %s body: after %d %s: %w", model.ErrInvalid, c.protocol, read, english.PluralWord(int(read), "byte", ""), err)
		case err != nil:
			return nil, fmt.Errorf("%w: %s body: read %d of %d bytes: %w", model.ErrInvalid, c.protocol, read, announced, err)
		case read == announced:
			return grant, nil
		case read > limit:
			return nil, c.tooLarge("body", read, "limits.body-bytes", limit)
		default:
			step := min(read, most-read)
			if err := grant.Grow(step); err != nil {
				return nil, err
			}
			in.reach(int(read + step))
		}
	}
}

func (c *Codec) tooLarge(what string, n int64, limit string, most int64) error {
	return &write.Refused{
		Status: http.StatusRequestEntityTooLarge, Limit: limit,
		Text: fmt.Sprintf("%s: the %s has %d bytes and %d are allowed; send fewer %s per request", c.protocol, what, n, most, c.rows),
	}
}
