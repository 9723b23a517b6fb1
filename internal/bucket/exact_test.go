package bucket

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/shaledb/shale/internal/model"
)

func TestExactly(t *testing.T) {
	broken := errors.New("broken")
	for _, wrap := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader, func(r io.Reader) io.Reader { return r }} {
		for have := range 5 {
			for size := range int64(5) {
				data := "abcdefgh"[:have]
				e, err := Exactly(wrap(strings.NewReader(data)), size)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(e)
				switch {
				case int64(have) == size:
					if err != nil || string(got) != data || e.Failed() != nil {
						t.Errorf("%d bytes: %q, %v, %v", have, got, err, e.Failed())
					}
				case !errors.Is(err, model.ErrInvalid) || !errors.Is(e.Failed(), model.ErrInvalid):
					t.Errorf("%d bytes announced as %d: %v, %v", have, size, err, e.Failed())
				case size > 0 && int64(len(got)) >= size:
					t.Errorf("%d bytes announced as %d: returned %d before the error", have, size, len(got))
				}
				e, err = Exactly(wrap(io.MultiReader(strings.NewReader(data), iotest.ErrReader(broken))), size)
				if err != nil {
					t.Fatal(err)
				}
				if got, err = io.ReadAll(e); err == nil || size > 0 && int64(len(got)) >= size {
					t.Errorf("%d bytes announced as %d, and then an error: %q, %v", have, size, got, err)
				}
			}
		}
	}
	if _, err := Exactly(new(bytes.Buffer), -1); !errors.Is(err, model.ErrInvalid) {
		t.Error(err)
	}
}
