package catalog

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog/checksum"
	"github.com/shaledb/shale/internal/store/catalog/entry"
	del "github.com/shaledb/shale/internal/store/deletion"
)

// -rewrite writes the golden records of the newest version.
var rewrite = flag.Bool("rewrite", false, "write the golden records from the code")

func goldens() map[string]*commit {
	deletion := &Deletion{
		Generation: 7, Committed: 8, Fences: []Fence{{"n", 1 << 60, 12}},
		Deletion: del.Deletion{
			Request: "0123456789abcdef", Signal: model.Metrics, Tenant: "a", Range: model.TimeRange{Min: -1, Max: math.MaxInt64},
			Matchers: []Matcher{
				{Name: "__name__", Op: model.MatchEqual, Value: "up"}, {Name: "job", Op: model.MatchNotEqual, Value: ""},
				{Name: "instance", Op: model.MatchRegexp, Value: "a.*|b"}, {Name: "le", Op: model.MatchNotRegexp, Value: "\"<&>\u2028"},
			},
		},
	}
	lines := &Deletion{
		Generation: 8, Committed: 9,
		Deletion: del.Deletion{
			Request: "1", Signal: model.Logs, Tenant: "a", Range: model.TimeRange{Min: 1, Max: 2}, NotBefore: 10,
			Matchers: []Matcher{{Name: "app", Op: model.MatchEqual, Value: "web"}}, Filter: `{app="web"} |= "secret"`,
		},
	}
	shipped := block("b1", math.MinInt64, math.MaxInt64)
	shipped.OrderLo, shipped.OrderHi, shipped.Generation = 42, 42, 7
	logs := block("l1", 3, 4)
	logs.Signal, logs.Samples, logs.Lines, logs.LineBytes = model.Logs, 0, 5, 1<<60
	logs.OrderLo, logs.OrderHi = 42, 42
	rebuilt := block("r1", 3, 4)
	rebuilt.OrderLo, rebuilt.OrderHi = 9, 9
	many := merged("m2", 1, 2)
	many.Tenants, many.TenantCount = nil, 600
	rolled := merged("r2", 3, 4)
	rolled.Resolution, rolled.Base, rolled.Policies = 300e9, "m1", "0123456789abcdef"
	return map[string]*commit{
		"rollups": {id: entry.ListID("rollups", []string{"r0"}, []string{"r2"}), committed: 7, replaces: []string{"r0"}, blocks: []Block{rolled}},
		"alone":   {id: entry.ListID("expired", []string{"m1"}, []string{"r2"}), committed: 8, replaces: []string{"m1"}, alone: []string{"r2"}},
		"unrolled": {
			id: entry.ListID("unrolled", []string{"m1 0123456789abcdef"}), committed: 9, unrolled: []UnrolledBlock{{"m1", "0123456789abcdef"}},
		},
		"ship": {
			id: shipID(42), ship: 42, committed: 1_700_000_000_000_000_001, attempt: "n1/0123456789ab/7", blocks: []Block{shipped, logs},
			covered: []Coverage{
				{Node: "n1", Epoch: 3, From: 1, To: 9, Appended: 1_700_000_000_000_000_000},
				{Node: "p0007", Epoch: 1, From: 101, To: 100, Closed: true},
			},
			skipped: []Skip{{Node: "p0007", Epoch: 1, From: 90, To: 100, Why: "does not decode"}},
		},
		"idle":    {id: shipID(43), ship: 43, committed: 8, attempt: "a/b/1", covered: []Coverage{{Node: "n1", Epoch: 3, From: 10, To: 11}}},
		"rebuilt": {id: "r1", committed: 7, blocks: []Block{rebuilt}},
		"merged":  {id: "merged-1", committed: 7, replaces: []string{"a1", "a2"}, blocks: []Block{merged("m1", 3, 4), many}},
		"expired": {id: entry.ListID("expired", []string{"b", "a"}), committed: 7, replaces: []string{"a", "b"}},
		"delete":  {id: deletionID(7), committed: 8, deletion: deletion},
		"lines":   {id: deletionID(8), committed: 9, deletion: lines},
		"cancel":  {id: cancelID(8), committed: 10, cancels: 8},
		"clean":   {id: entry.ListID("clean", []string{"b1 7"}), committed: 9, clean: []CleanBlock{{"b1", 7}}},
	}
}

// TestGolden pins versions 2 to 4 of the records.
func TestGolden(t *testing.T) {
	for name, r := range goldens() {
		got, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		file := fmt.Sprintf("testdata/v%d_%s.json", r.version(), name)
		if *rewrite {
			if err := os.WriteFile(file, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		back, err := parseRecord(recordName(r.id), want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, back, cmp.AllowUnexported(commit{}), cmpopts.IgnoreUnexported(del.Deletion{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestMergedID pins these ids, and that of a record.
func TestMergedID(t *testing.T) {
	r := model.TimeRange{Min: 1_700_000_000_000_000_000, Max: 1_700_007_199_999_999_999}
	seen := map[string]bool{}
	for i, id := range []string{
		MergedID([]string{"b", "a"}, model.Metrics, r, 0, 0, 5, [16]byte{}),
		MergedID([]string{"ab"}, model.Metrics, r, 0, 0, 5, [16]byte{}),
		MergedID([]string{"a", "b"}, model.Logs, r, 0, 0, 5, [16]byte{}),
		MergedID([]string{"a", "b"}, model.Metrics, model.TimeRange{Min: r.Min, Max: r.Max + 1}, 0, 0, 5, [16]byte{}),
		MergedID([]string{"a", "b"}, model.Metrics, r, 1, 0, 5, [16]byte{}),
		MergedID([]string{"a", "b"}, model.Metrics, r, 0, 1, 5, [16]byte{}),
		MergedID([]string{"a", "b"}, model.Metrics, r, 0, 0, 6, [16]byte{}),
		MergedID([]string{"a", "b"}, model.Metrics, r, 0, 0, 5, [16]byte{15: 1}),
	} {
		if seen[id] || strings.ContainsAny(id, "/ .") {
			t.Errorf("%d: %s", i, id)
		}
		seen[id] = true
	}
	const want = "-20231114T221320Z-metrics"
	if id := MergedID([]string{"a", "b"}, model.Metrics, r, 0, 0, 5, [16]byte{}); !seen[id] || !strings.HasSuffix(id, want) {
		t.Errorf("%s", id)
	}
	if a, b := entry.ListID("merged", []string{"a"}, []string{"b"}), entry.ListID("merged", []string{"a", "b"}, nil); a == b {
		t.Errorf("%s", a)
	}
}

// TestBlockID pins the ids: a ship that a later version repeats must overwrite itself.
func TestBlockID(t *testing.T) {
	r := model.TimeRange{Min: 1_700_000_000_000_000_000, Max: 1_700_007_199_999_999_999}
	id := func(node string, s model.Signal, group string, r model.TimeRange, lo, hi uint64, cut uint32) string {
		return BlockID(node, 3, s, group, r, lo, hi, cut)
	}
	const want = "b104632a9cb4046efbdc19ffe9d03704-20231114T221320Z-metrics"
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
		put(t, b, "seed", string(checksum.Seal([]byte(data))))
		if got, err := EnsureSeed(ctx, b); !errors.Is(err, class) || err == nil && got != 0xff {
			t.Errorf("%s: %x, %v", data, got, err)
		}
	}

	unsealed := memory(t)
	put(t, unsealed, "seed", `{"version":1,"seed":"00000000000000ff"}`)
	if _, err := EnsureSeed(ctx, unsealed); !errors.Is(err, model.ErrCorrupt) {
		t.Errorf("a seed without a checksum: %v", err)
	}
	orphaned := memory(t)
	put(t, orphaned, "blocks/x", "data")
	if _, err := EnsureSeed(ctx, orphaned); !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), "blocks/x") {
		t.Errorf("a bucket with blocks and no seed: %v", err)
	}
}

func FuzzParseRecord(f *testing.F) {
	for _, name := range []string{"ship", "idle", "rebuilt", "merged", "expired", "delete", "lines", "cancel", "clean"} {
		data, err := os.ReadFile("testdata/v2_" + name + ".json")
		if err != nil {
			f.Fatal(err)
		}
		body, err := checksum.Unseal(data)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		data := checksum.Seal(body)
		var named struct{ ID string }
		_ = json.Unmarshal(body, &named)
		r, err := parseRecord(recordName(named.ID), data)
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
		back, err := parseRecord(recordName(named.ID), again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, back, cmp.AllowUnexported(commit{}), cmpopts.IgnoreUnexported(del.Deletion{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestBadShips: a record of a ship that does not hold together is refused.
func TestBadShips(t *testing.T) {
	data, err := os.ReadFile("testdata/v2_ship.json")
	if err != nil {
		t.Fatal(err)
	}
	body, err := checksum.Unseal(data)
	if err != nil {
		t.Fatal(err)
	}
	const id = "ship-0000000000000042"
	for what, test := range map[string]struct{ id, old, new string }{
		"attempt":    {id, `"attempt": "n1/0123456789ab/7"`, `"attempt": ""`},
		"level":      {id, `"level": 0`, `"level": 1`},
		"order":      {id, `"order_lo": 42`, `"order_lo": 41`},
		"resolution": {id, `"resolution": 0`, `"resolution": 300000000000`},
		"begin":      {id, `"from": 1,`, `"from": 0,`},
		"gap":        {id, `"from": 101,`, `"from": 102,`},
		"twice":      {id, `"node": "p0007"`, `"node": "n1", "epoch": 3, "node": "n1"`},
		"reason":     {id, `"why": "does not decode"`, `"why": ""`},
		"replaces":   {id, `"blocks"`, `"replaces": ["x"], "blocks"`},
		"name":       {"merged-1", id, "merged-1"},
		"number":     {"ship-42", id, "ship-42"},
		"zero":       {"ship-0000000000000000", id, "ship-0000000000000000"},
	} {
		changed := strings.Replace(string(body), test.old, test.new, 1)
		if what == "twice" {
			changed = strings.Replace(changed, `"epoch": 1,`, `"epoch": 3,`, 1)
		}
		if changed == string(body) {
			t.Fatalf("%s: there is no %s", what, test.old)
		}
		if _, err := parseRecord(recordName(test.id), checksum.Seal([]byte(changed))); !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
