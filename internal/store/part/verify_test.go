package part

import (
	"bytes"
	"errors"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
)

// TestVerifyPagesFindsEveryChange changes each byte of a part in turn, and cuts it short.
func TestVerifyPagesFindsEveryChange(t *testing.T) {
	racetest.SkipSerial(t)
	whole := smallPart(t, Dense)
	verify := func(b []byte) error {
		r, err := Open(t.Context(), bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return err
		}
		return VerifyPages(t.Context(), r)
	}
	if err := verify(whole); err != nil {
		t.Fatal(err)
	}
	b := bytes.Clone(whole)
	for at := range whole {
		b[at] ^= 0x10
		if err := verify(b); !errors.Is(err, model.ErrCorrupt) && !errors.Is(err, model.ErrInvalid) {
			t.Fatalf("byte %d of %d: %v", at, len(b), err)
		}
		b[at] = whole[at]
		if err := verify(whole[:at]); !errors.Is(err, model.ErrCorrupt) {
			t.Fatalf("cut to %d of %d bytes: %v", at, len(b), err)
		}
	}
}
