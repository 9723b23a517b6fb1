package promwrite

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/klauspost/compress/s2"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// readStep is by how much a body of unknown length may be ahead of its admission.
const readStep = 64 << 10

// readBody reads the body into in. Of a body with a Content-Length its bytes are admitted already; for any other, grow
// is asked for each step before it is read.
func readBody(r *http.Request, in *buffer, limit int64, grow func(int64) error) error {
	if n := r.ContentLength; n >= 0 {
		in.resize(int(n))
		if read, err := io.ReadFull(r.Body, in.bytes); err != nil {
			return fmt.Errorf("%w: remote write body: read %d of %d bytes: %w", model.ErrInvalid, read, n, err)
		}
		return nil
	}
	in.bytes = in.bytes[:0]
	for {
		if err := grow(readStep); err != nil {
			return err
		}
		begin := len(in.bytes)
		in.extend(readStep)
		n, err := io.ReadFull(r.Body, in.bytes[begin:])
		in.bytes = in.bytes[:begin+n]
		switch {
		case int64(len(in.bytes)) > limit:
			return tooLarge("body", int64(len(in.bytes)), "limits.body-bytes", limit)
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			// A chunked body that breaks off is an unexpected end too. Its snappy block is then cut off as well, and
			// decoding says so.
			return nil
		case err != nil:
			return fmt.Errorf("%w: remote write body: after %d bytes: %w", model.ErrInvalid, len(in.bytes), err)
		}
	}
}

// decode decompresses in into out. The length that the block declares is checked and reserved before any memory is
// taken for it.
func decode(in []byte, out *buffer, limit int64, grow func(int64) error) error {
	n, err := s2.DecodedLen(in)
	if err != nil {
		return fmt.Errorf("%w: remote write body: not a snappy block: %w at byte 0 of the body", model.ErrInvalid, err)
	}
	if limit <= 0 || limit > maxDecoded {
		limit = maxDecoded
	}
	if int64(n) > limit {
		return tooLarge("decoded body", int64(n), "limits.decoded-bytes", limit)
	}
	if err := grow(int64(n)); err != nil {
		return err
	}
	out.resize(n)
	if _, err := s2.Decode(out.bytes, in); err != nil {
		return fmt.Errorf("%w: remote write body: the snappy block of %d bytes, which declares %d decoded bytes: %w", model.ErrInvalid, len(in), n, err)
	}
	return nil
}

func tooLarge(what string, n int64, limit string, most int64) error {
	return &write.Refused{
		Status: http.StatusRequestEntityTooLarge, Limit: limit,
		Text: fmt.Sprintf("remote write: the %s has %d bytes and %d are allowed; send fewer samples per request", what, n, most),
	}
}
