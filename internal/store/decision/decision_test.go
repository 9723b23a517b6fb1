package decision

import (
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket/fault"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/store/catalog"
)

// TestOnce: processes that decide at the same time learn one decision, also if the store's answers are lost,
// and it stays.
func TestOnce(t *testing.T) {
	plain, err := bucketfs.New(vfs.NewMem(), "bucket")
	if err != nil {
		t.Fatal(err)
	}
	for round := range 50 {
		b := fault.New(plain)
		if round%2 == 0 {
			b.Add(fault.Rule{Kind: fault.LostAck, Op: fault.PutIfAbsent, Times: 2})
		}
		request := string(rune('a'+round%26)) + string(rune('a'+round/26))
		if _, known, err := Read(t.Context(), b, request); known || err != nil {
			t.Fatalf("before: %v, %v", known, err)
		}
		choices := [][]catalog.Fence{nil, {{Node: "p0000", Epoch: 1, Seq: 7}}, {{Node: "p0000", Epoch: 1, Seq: 8}, {Node: "p0001", Epoch: 1, Seq: 2}}}
		got := make([][]catalog.Fence, len(choices))
		var all sync.WaitGroup
		for i, c := range choices {
			all.Go(func() {
				for {
					fences, err := Take(t.Context(), b, request, c)
					if err == nil {
						got[i] = fences
						return
					}
				}
			})
		}
		all.Wait()
		now, known, err := Read(t.Context(), b, request)
		if !known || err != nil {
			t.Fatalf("after: %v, %v", known, err)
		}
		for i := range got {
			if !slices.Equal(got[i], now) {
				t.Errorf("one has learnt %v, and %v was decided", got[i], now)
			}
		}
	}
}
