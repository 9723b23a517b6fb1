package catalog

import (
	"errors"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
)

// TestGolden keeps version 1 of the records as it is.
func TestGolden(t *testing.T) {
	for name, r := range map[string]*record{
		"block":   recordOf(block("b1", math.MinInt64, math.MaxInt64, "a1", "a2"), 1_700_000_000_000_000_001),
		"expired": (&Catalog{now: func() int64 { return 7 }}).tombstone([]string{"b", "a"}),
	} {
		want, err := os.ReadFile("testdata/record_" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		back, err := parseRecord(recordName(r.ID), want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, back); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestBlockID keeps the ids: a ship that is repeated by a later version must overwrite itself.
func TestBlockID(t *testing.T) {
	r := model.TimeRange{Min: 1_700_000_000_000_000_000, Max: 1_700_007_199_999_999_999}
	id := func(node string, s model.Signal, group string, r model.TimeRange, lo, hi uint64, cut uint32) string {
		return BlockID(node, 3, s, group, r, lo, hi, cut)
	}
	const want = "20231114T221320Z-metrics-b104632a9cb4046efbdc19ffe9d03704"
	if got := id("n1", model.Metrics, "default", r, 5, 9, 0); got != want {
		t.Errorf("%s", got)
	}
	seen := map[string]bool{want: true}
	for i, other := range []string{
		id("n2", model.Metrics, "default", r, 5, 9, 0),
		id("n1d", model.Metrics, "efault", r, 5, 9, 0),
		id("n1", model.Logs, "default", r, 5, 9, 0),
		id("n1", model.Metrics, "default", model.TimeRange{Min: r.Min, Max: r.Max + 1}, 5, 9, 0),
		id("n1", model.Metrics, "default", model.TimeRange{Min: r.Min + 1, Max: r.Max}, 5, 9, 0),
		id("n1", model.Metrics, "default", r, 4, 9, 0),
		id("n1", model.Metrics, "default", r, 5, 10, 0),
		id("n1", model.Metrics, "default", r, 5, 9, 1),
		id("n1", model.Metrics, "default", model.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}, 5, 9, 1),
		id("n1", model.Metrics, "default", model.TimeRange{Min: math.MinInt64, Max: math.MinInt64}, 5, 9, 1),
	} {
		if seen[other] {
			t.Errorf("%d: %s is not unique", i, other)
		}
		if seen[other] = true; strings.ContainsAny(other, "/ .") {
			t.Errorf("%d: %s", i, other)
		}
	}
}

func TestEnsureSeed(t *testing.T) {
	b := memory(t)
	seeds := make([]model.KeySeed, 8)
	var wg sync.WaitGroup
	for i := range seeds {
		wg.Go(func() {
			var err error
			if seeds[i], err = EnsureSeed(ctx, b); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, s := range seeds {
		if s != seeds[0] || s == 0 {
			t.Fatalf("the seeds are %x", seeds)
		}
	}

	inner, err := fs.New(vfs.NewMem(), "bucket")
	if err != nil {
		t.Fatal(err)
	}
	lossy := fault.New(inner, fault.Rule{Kind: fault.LostAck, Op: fault.PutIfAbsent, Times: 1})
	if _, err := EnsureSeed(ctx, lossy); !errors.Is(err, model.ErrTransient) {
		t.Fatal(err)
	}
	first, err := readSeed(ctx, lossy)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := EnsureSeed(ctx, lossy); err != nil || again != first {
		t.Fatalf("%x after %x, %v", again, first, err)
	}

	for data, class := range map[string]error{
		`{"version":1,"seed":"00000000000000ff"}`:       nil,
		`{"version":2,"seed":"00000000000000ff"}`:       model.ErrInvalid,
		`{"version":1,"seed":"ff"}`:                     model.ErrCorrupt,
		`{"version":1,"seed":"00000000000000ff","a":1}`: model.ErrCorrupt,
		``: model.ErrCorrupt,
	} {
		b := memory(t)
		put(t, b, "seed", data)
		if got, err := EnsureSeed(ctx, b); !errors.Is(err, class) || err == nil && got != 0xff {
			t.Errorf("%s: %x, %v", data, got, err)
		}
	}

	orphaned := memory(t)
	put(t, orphaned, "blocks/x", "data")
	if _, err := EnsureSeed(ctx, orphaned); !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), "blocks/x") {
		t.Errorf("a bucket with blocks and no seed: %v", err)
	}
}

func FuzzParseRecord(f *testing.F) {
	for _, name := range []string{"block", "expired"} {
		data, err := os.ReadFile("testdata/record_" + name + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseRecord("catalog/b1.json", data)
		if err != nil {
			if !errors.Is(err, model.ErrCorrupt) && !errors.Is(err, model.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		again, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseRecord("catalog/b1.json", again); err != nil {
			t.Fatal(err)
		}
	})
}
