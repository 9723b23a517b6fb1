package promwrite

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// firstStep is how many bytes of a body are reserved before the first of them has come.
const firstStep = 16 << 10

// readBody reads the body of a request into in and returns what the request holds of the byte budget. No byte is read
// that is not reserved, and as much is reserved ahead as has come: a connection that announces a large body and sends
// nothing holds 16 KiB, for as long as the server lets it. If the grant is nil, the error is not.
func (h *Handler) readBody(r *http.Request, tenant string, in *buffer, limit int64) (_ *write.Grant, err error) {
	if limit <= 0 || limit > maxDecoded {
		limit = maxDecoded
	}
	announced := r.ContentLength // -1: unknown
	if announced > limit {
		return nil, tooLarge("body", announced, "limits.body-bytes", limit)
	}
	// A body of unknown length may be read for one byte more than allowed, to see that it has more.
	most := limit + 1
	if announced >= 0 {
		most = announced
	}
	first := min(firstStep, most)
	grant, err := h.sink.Admit(r.Context(), tenant, first)
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
	in.bytes = in.bytes[:0]
	in.reach(int(first))
	for {
		begin := len(in.bytes)
		n, err := io.ReadFull(r.Body, in.bytes[begin:in.reached])
		in.bytes = in.bytes[:begin+n]
		switch read := int64(len(in.bytes)); {
		case announced < 0 && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
			// A chunked body that breaks off is an unexpected end too. What it holds is then cut off as well, and decoding
			// says so.
			return grant, nil
		case err != nil && announced < 0:
			return nil, fmt.Errorf("%w: remote write body: after %d bytes: %w", model.ErrInvalid, read, err)
		case err != nil:
			return nil, fmt.Errorf("%w: remote write body: read %d of %d bytes: %w", model.ErrInvalid, read, announced, err)
		case read == announced:
			return grant, nil
		case read > limit:
			return nil, tooLarge("body", read, "limits.body-bytes", limit)
		default:
			step := min(read, most-read)
			if err := grant.Grow(step); err != nil {
				return nil, err
			}
			in.reach(int(read + step))
		}
	}
}

func tooLarge(what string, n int64, limit string, most int64) error {
	return &write.Refused{
		Status: http.StatusRequestEntityTooLarge, Limit: limit,
		Text: fmt.Sprintf("remote write: the %s has %d bytes and %d are allowed; send fewer samples per request", what, n, most),
	}
}
