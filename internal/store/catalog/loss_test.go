package catalog

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog/entry"
)

// openWith opens a catalogue with a memory and a clock.
func openWith(t fataler, b, mem bucket.Bucket, now *int64) *Catalog {
	t.Helper()
	c, err := Open(ctx, b, Options{Memory: mem, Now: func() int64 { return *now }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func remove(t fataler, b bucket.Bucket, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := b.Delete(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
}

func refresh(t fataler, c *Catalog) {
	t.Helper()
	if err := c.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
}

// lostOf returns the ids of the lost records.
func lostOf(c *Catalog) []string { return slices.Sorted(maps.Keys(c.lost)) }

// TestLostRecord: every process finds a lost record, whether it knew it or not. Its rows stay, and its block
// is not collected. It is no longer lost when it is back.
func TestLostRecord(t *testing.T) {
	for what, names := range map[string][]string{
		"the record":          {shipB},
		"record and copy":     {shipB, "copies/" + shipB},
		"all records":         {shipA, shipB},
		"everything but data": {shipA, shipB, "copies/" + shipA, "copies/" + shipB},
	} {
		now := int64(1e18)
		b, mem := memory(t), memory(t)
		c := openWith(t, b, mem, &now)
		ship(t, c, block("a", 1, 2))
		ship(t, c, block("b", 3, 4))
		data, err := b.Get(ctx, shipB)
		if err != nil {
			t.Fatal(err)
		}
		other := openWith(t, b, nil, &now)
		remove(t, b, names...)
		refresh(t, c)
		refresh(t, other)
		for who, c := range map[string]*Catalog{
			"the writer": c, "another process": other, "the writer, restarted": openWith(t, b, mem, &now),
		} {
			if got := lostOf(c); !slices.Contains(got, shipID(2)) || slices.Contains(got, shipID(1)) != slices.Contains(names, shipA) {
				t.Errorf("%s: %s: lost are %v", what, who, got)
			}
			if got := ids(c.Live()); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("%s: %s: live are %v", what, who, got)
			}
		}
		// A process without a memory knows nothing if the copies are gone, too. It must not collect.
		stranger := openWith(t, b, nil, &now)
		if _, copied := slices.BinarySearch(objectsBelow(t, b, CopyPrefix), "copies/"+shipB); copied != slices.Contains(lostOf(stranger), shipID(2)) {
			t.Errorf("%s: a stranger has lost %v", what, lostOf(stranger))
		}
		for range 5 {
			now += int64(30 * time.Hour)
			for _, c := range []*Catalog{c, stranger} {
				if _, err := c.Collect(ctx, CollectOptions{Grace: time.Hour, UploadGrace: 24 * time.Hour, DeletionGrace: 24 * time.Hour}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := objectsBelow(t, b, BlockPrefix); len(got) != 2 {
			t.Errorf("%s: blocks %v are left", what, got)
		}
		if n := len(lostOf(stranger)) + len(stranger.strays); n == 0 {
			t.Errorf("%s: a stranger notices nothing", what)
		}
		put(t, b, shipB, string(data))
		refresh(t, c)
		if slices.Contains(lostOf(c), shipID(2)) {
			t.Errorf("%s: the record is back and still lost", what)
		}
	}
}

func objectsBelow(t fataler, b bucket.Bucket, prefix string) []string {
	t.Helper()
	names := []string{}
	if err := b.List(ctx, prefix, func(name string, _ int64) error { names = append(names, name); return nil }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// TestDamagedRecord: a record that cannot be read is replaced by its copy, or that of the memory. Without
// either, the bucket is refused.
func TestDamagedRecord(t *testing.T) {
	now := int64(1e18)
	b, mem := memory(t), memory(t)
	ship(t, openWith(t, b, mem, &now), block("a", 1, 2))
	put(t, b, shipA, "crc32c 00000000\n{}")
	for _, m := range []bucket.Bucket{mem, nil} {
		c := openWith(t, b, m, &now)
		if !slices.Equal(ids(c.Live()), []string{"a"}) || !c.damaged[shipID(1)] || len(c.lost) > 0 {
			t.Errorf("live are %v, damaged %v, lost %v", ids(c.Live()), c.damaged, c.lost)
		}
	}
	put(t, b, "copies/"+shipA, "crc32c 00000000\n{}")
	if c := openWith(t, b, mem, &now); !slices.Equal(ids(c.Live()), []string{"a"}) {
		t.Errorf("from the memory: live are %v", ids(c.Live()))
	}
	if _, err := Open(ctx, b, Options{}); !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), shipA) || !strings.Contains(err.Error(), "operations.md") {
		t.Errorf("without any copy: %v", err)
	}
}

// TestFailingMemory: a catalogue works without its memory.
func TestFailingMemory(t *testing.T) {
	now := int64(1e18)
	b, mem := memory(t), memory(t)
	for _, op := range []fault.Op{fault.Put, fault.Get, fault.List, fault.Delete} {
		mem.Add(fault.Rule{Kind: fault.Fail, Op: op, Times: math.MaxInt32})
	}
	c := openWith(t, b, mem, &now)
	ship(t, c, block("a", 1, 2))
	merge(t, c, merged("b", 1, 2), "a")
	if err := c.Expire(ctx, olderThan(100), 0); err != nil {
		t.Fatal(err)
	}
	mem.Clear()
	if c = openWith(t, b, mem, &now); len(c.lost) > 0 || c.forgetful {
		t.Errorf("lost are %v", c.lost)
	}
}

// TestLongAbsence: a process that was away for longer than lists of collected records are kept warns of no
// loss, unless an object of the record is left.
func TestLongAbsence(t *testing.T) {
	now := int64(1e18)
	b, mem := memory(t), memory(t)
	mine := openWith(t, b, mem, &now)
	ship(t, mine, block("a", 1, 2))
	ship(t, mine, block("b", 1, 2))
	theirs := openWith(t, b, nil, &now)
	merge(t, theirs, merged("c", 1, 2), "a")
	now += int64(31 * time.Hour)
	if err := theirs.Expire(ctx, olderThan(math.MinInt64), time.Minute); err != nil {
		t.Fatal(err)
	}
	now += 2 * int64(listsKept)
	for range 2 { // the second deletes the list that the first has found old
		if _, err := theirs.Collect(ctx, CollectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := objectsBelow(t, b, CollectedPrefix); len(got) != 0 {
		t.Fatalf("old lists are left: %v", got)
	}
	remove(t, b, shipB, "copies/"+shipB)
	if mine = openWith(t, b, mem, &now); !slices.Equal(lostOf(mine), []string{shipID(2)}) {
		t.Errorf("lost are %v", lostOf(mine))
	}
	if got := objectsBelow(t, mem, RecordPrefix); len(got) != 2 {
		t.Errorf("the memory has %v", got)
	}
}

// TestUncopied: a record whose writer crashed before it wrote the copy gets one, unless it is garbage.
func TestUncopied(t *testing.T) {
	now := int64(1e18)
	b := memory(t)
	c := openWith(t, b, nil, &now)
	ship(t, c, block("a", 1, 2))
	ship(t, c, block("b", 1, 2))
	merge(t, c, merged("c", 1, 2), "a")
	merge(t, c, merged("d", 1, 2), "c")
	all := objectsBelow(t, b, CopyPrefix)
	remove(t, b, all...)
	refresh(t, c)
	if _, err := c.Collect(ctx, CollectOptions{Grace: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if got := objectsBelow(t, b, CopyPrefix); len(got) != 3 || slices.Contains(got, copyName(recordName(entry.ListID("merged", []string{"a"}, []string{"c"})))) {
		t.Errorf("copies: %v", got)
	}
}

// process is one of several that share a bucket. It may be away, and then has only its memory.
type process struct {
	mem *fault.Bucket
	c   *Catalog // nil: away
}

// leavesOf returns the shipped blocks whose rows a block holds. Their names are in that of the block.
func leavesOf(id string) []string { return strings.Split(id, "-") }

// lossWorld is a bucket with several processes, and what ought to be in it.
type lossWorld struct {
	b         *fault.Bucket
	now       int64
	processes []*process
	leaves    map[string]int64 // shipped, not expired: the greatest time of a row
	removed   map[string]bool  // records that the test has removed
}

func (w *lossWorld) open(t fataler, p *process) {
	if p.c == nil {
		p.c = openWith(t, w.b, p.mem, &w.now)
	}
}

// visible returns the leaves that a process sees. It fails if the process sees one twice, unless the bucket
// was replaced: then a block may be there next to the inputs of its merge, which have the same rows.
func visible(t *rapid.T, c *Catalog, twice bool) map[string]bool {
	found := map[string]bool{}
	for _, b := range c.Live() {
		for _, leaf := range leavesOf(b.ID) {
			if found[leaf] && !twice {
				t.Fatalf("%s is visible twice: %v", leaf, ids(c.Live()))
			}
			found[leaf] = true
		}
	}
	return found
}

// step lets a process do something.
func (w *lossWorld) step(t *rapid.T, n int, p *process) {
	switch rapid.IntRange(0, 6).Draw(t, "step") {
	case 0, 1:
		w.open(t, p)
		refresh(t, p.c) // the processes take turns with one journal
		id := fmt.Sprintf("l%03d", n)
		at := w.now - int64(rapid.IntRange(0, 48).Draw(t, "age"))*int64(time.Hour)
		ship(t, p.c, block(id, at, at))
		w.leaves[id] = at
	case 2:
		w.open(t, p)
		refresh(t, p.c)
		w.merge(t, p.c, n)
	case 3:
		w.open(t, p)
		refresh(t, p.c)
		before := w.now - int64(rapid.IntRange(24, 60).Draw(t, "retention"))*int64(time.Hour)
		for _, b := range p.c.Live() {
			if b.Range.Max < before {
				for _, leaf := range leavesOf(b.ID) {
					delete(w.leaves, leaf)
				}
			}
		}
		if err := p.c.Expire(ctx, olderThan(before), time.Hour); err != nil {
			t.Fatal(err)
		}
	case 4:
		w.open(t, p)
		if _, err := p.c.Collect(ctx, CollectOptions{Grace: time.Hour, UploadGrace: 24 * time.Hour, DeletionGrace: 24 * time.Hour}); err != nil {
			t.Fatal(err)
		}
	case 5:
		p.c = nil // it is away, or crashes
	case 6:
		w.open(t, p)
		refresh(t, p.c)
		if _, err := p.c.Delete(ctx, deletion("a", 1, 2)); err != nil {
			t.Fatal(err)
		}
	}
}

// merge replaces random blocks by one.
func (w *lossWorld) merge(t *rapid.T, c *Catalog, n int) {
	var inputs, leaves []string
	r := model.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}
	for _, b := range c.Live() {
		if rapid.Bool().Draw(t, "merge") {
			inputs, leaves = append(inputs, b.ID), append(leaves, leavesOf(b.ID)...)
			r = model.TimeRange{Min: min(r.Min, b.Range.Min), Max: max(r.Max, b.Range.Max)}
		}
	}
	if len(inputs) < 2 || len(leaves) > 40 {
		return
	}
	slices.Sort(leaves)
	out := merged(strings.Join(leaves, "-"), r.Min, r.Max)
	done, err := c.Uploading(ctx, out.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	put(t, c.b, ObjectName(out.ID), "x")
	if rapid.IntRange(0, 4).Draw(t, "crash") == 0 {
		return
	}
	if err := c.Replace(ctx, inputs, []Block{out}); err != nil {
		t.Fatal(err)
	}
}

// lose removes a record, and its copy if every process remembers it.
func (w *lossWorld) lose(t *rapid.T) {
	records := objectsBelow(t, w.b, RecordPrefix)
	if len(records) == 0 {
		return
	}
	name := rapid.SampledFrom(records).Draw(t, "lost")
	both := rapid.Bool().Draw(t, "with its copy")
	if _, copied := slices.BinarySearch(objectsBelow(t, w.b, CopyPrefix), copyName(name)); both || !copied {
		for _, p := range w.processes {
			w.open(t, p)
			refresh(t, p.c)
		}
		remove(t, w.b, copyName(name))
	}
	remove(t, w.b, name)
	id, _ := recordOf(name)
	w.removed[id] = true
}

// check compares what a process reports as lost with what the test has removed and no process has collected.
func (w *lossWorld) check(t *rapid.T, p *process) {
	t.Helper()
	w.open(t, p)
	refresh(t, p.c)
	listed := objectsBelow(t, w.b, RecordPrefix)
	for _, id := range lostOf(p.c) {
		if !w.removed[id] {
			t.Fatalf("false alarm: %s", id)
		}
	}
	for id := range w.removed {
		if slices.Contains(listed, recordName(id)) || p.c.lost[id] {
			continue
		}
		// It must have been collected since: then it is not known, and no row is missing.
		if p.c.records[id] != nil || slices.Contains(objectsBelow(t, w.b, CopyPrefix), copyName(recordName(id))) {
			t.Fatalf("the loss of %s is not found", id)
		}
	}
	if got := visible(t, p.c, false); !maps.Equal(got, keysOf(w.leaves)) {
		t.Fatalf("visible are %v, expected %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(w.leaves)))
	}
	if len(p.c.strays) > 0 {
		t.Fatalf("false strays %v", p.c.strays)
	}
}

func keysOf[V any](m map[string]V) map[string]bool {
	keys := map[string]bool{}
	for k := range m {
		keys[k] = true
	}
	return keys
}

// TestEveryLossIsFound lets several processes, some of which are away for a while, ship, merge, expire,
// delete and collect on one bucket, which loses records. Every loss is found, by each of them, and nothing
// else is taken for one. No row disappears.
func TestEveryLossIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &lossWorld{b: memory(t), now: 1e18, leaves: map[string]int64{}, removed: map[string]bool{}}
		for range 3 {
			w.processes = append(w.processes, &process{mem: memory(t)})
		}
		losses := rapid.IntRange(0, 3).Draw(t, "losses")
		steps := rapid.IntRange(1, 40).Draw(t, "steps")
		for n := range steps {
			w.now += int64(rapid.IntRange(0, 90).Draw(t, "minutes")) * int64(time.Minute)
			p := rapid.SampledFrom(w.processes).Draw(t, "process")
			w.step(t, n, p)
			if losses > 0 && rapid.IntRange(0, steps/3).Draw(t, "lose") == 0 {
				losses--
				w.lose(t)
			}
			w.check(t, rapid.SampledFrom(w.processes).Draw(t, "checked"))
		}
		for _, p := range w.processes {
			w.check(t, p)
		}
		w.rollBack(t)
	})
}

// rollBack puts an older copy of the bucket in place, and expects the processes to notice.
func (w *lossWorld) rollBack(t *rapid.T) {
	older := map[string][]byte{}
	for _, name := range objectsBelow(t, w.b, "") {
		data, err := w.b.Get(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		older[name] = data
	}
	clear(w.removed)
	for n := range rapid.IntRange(1, 10).Draw(t, "later") {
		w.now += int64(rapid.IntRange(0, 90).Draw(t, "minutes")) * int64(time.Minute)
		w.step(t, 500+n, rapid.SampledFrom(w.processes).Draw(t, "process"))
	}
	for _, p := range w.processes {
		w.open(t, p)
		refresh(t, p.c)
		if rapid.Bool().Draw(t, "restart") {
			p.c = nil
		}
	}
	newer := objectsBelow(t, w.b, RecordPrefix)
	remove(t, w.b, objectsBelow(t, w.b, "")...)
	for name, data := range older {
		put(t, w.b, name, string(data))
	}
	for _, p := range w.processes {
		w.open(t, p)
		refresh(t, p.c)
		for _, name := range newer {
			if id, _ := recordOf(name); older[name] == nil && !p.c.lost[id] {
				t.Fatalf("the bucket is older, and the loss of %s is not found", id)
			}
		}
		got := visible(t, p.c, true)
		for leaf := range w.leaves {
			if !got[leaf] {
				t.Fatalf("%s has disappeared", leaf)
			}
		}
	}
}
