package promwrite

import (
	"errors"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// TestSymbolsAreReserved: a body of many symbols allocates no more than it has reserved, and nothing when
// that is refused.
func TestSymbolsAreReserved(t *testing.T) {
	alloctest.Counts(t)
	const symbols, slack = 2_000_000, 64 << 10
	raw := []byte(strings.Repeat(msg(4), symbols))
	refused := errors.New("refused")
	for _, c := range []struct {
		what  string
		most  int64
		after int // symbols that the walker had room for
		want  error
	}{
		{"granted", symbols * symbolBytes, 0, nil},
		{"granted, with a walker of before", symbols * symbolBytes, 5000, nil},
		{"refused", symbols*symbolBytes - 1, 0, refused},
	} {
		w, reserved := new(walker), int64(0)
		w.symbolic.symbols = make([]span, 0, c.after)
		got := alloctest.Bytes(func() {
			w.start(v2, raw, seed, write.Limits{}, new(model.Batch), func(bytes int64) error {
				if reserved+bytes > c.most {
					return refused
				}
				reserved += bytes
				return nil
			})
			if err := w.walk(); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.what, err, c.want)
			}
		})
		if got > uint64(reserved)+slack {
			t.Errorf("%s: %d bytes are allocated, and %d are reserved", c.what, got, reserved)
		}
		if n := len(w.symbolic.symbols); c.want == nil && n != symbols {
			t.Errorf("%s: %d symbols, want %d", c.what, n, symbols)
		}
	}
}
