package logs

import (
	"bytes"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// TestLinesInOldMemoryAreReserved: lines that fit into the memory of an earlier batch are reserved as they
// come, be they few and long or many and short.
func TestLinesInOldMemoryAreReserved(t *testing.T) {
	rules := DefaultRules()
	stream := NewStreams(9, StreamCacheBytes).GetText(&rules, []byte(`{a="b"}`))
	for size, n := range map[int]int{60_000: 200, 100: 20_000, 0: 20_000} {
		b := &model.Batch{Signal: model.Logs}
		b.Text.Size(n)
		b.Text.Bytes = make([]byte, 0, 16<<20)
		reserved := int64(0)
		var e Entries
		e.Start(&rules, b, n*size, func(n int64) error { reserved += n; return nil })
		e.Begin(stream)
		line := bytes.Repeat([]byte("x"), size)
		for i := range n {
			e.Meta.Reset()
			if err := e.Add(int64(i), line); err != nil {
				t.Fatal(err)
			}
			if used := e.room.Used(); used > reserved+2*uncounted+int64(size) {
				t.Fatalf("line %d of %d bytes: %d bytes are used and %d reserved", i, size, used, reserved)
			}
		}
	}
}
