package catalog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog/checksum"
	"github.com/shaledb/shale/internal/store/catalog/entry"
)

var ctx = context.Background()

type fataler interface {
	Helper()
	Fatal(args ...any)
}

func memory(t fataler) *fault.Bucket {
	t.Helper()
	b, err := fs.New(vfs.NewMem(), "bucket")
	if err != nil {
		t.Fatal(err)
	}
	return fault.New(b)
}

func open(t fataler, b bucket.Bucket, now *int64) *Catalog {
	t.Helper()
	c, err := Open(ctx, b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if now != nil {
		c.now = func() int64 { return *now }
	}
	return c
}

func block(id string, minTime, maxTime int64) Block {
	b := Block{
		ID: id, Node: "n1", Signal: model.Metrics, Range: model.TimeRange{Min: minTime, Max: maxTime}, SeqLo: 1, SeqHi: 9,
		KeyMin: model.Key{Hi: 1}, KeyMax: model.Key{Hi: math.MaxUint64, Lo: 7}, Series: 3, Samples: 1 << 60, Bytes: 12345,
		Tenants: []string{"a", "b"}, Created: -5,
	}
	b.Complete()
	return b
}

// merged is a block of a merge.
func merged(id string, minTime, maxTime int64) Block {
	b := block(id, minTime, maxTime)
	b.Level, b.OrderLo, b.OrderHi, b.Generation = Settled, 2, 11, 4
	b.Sources = []Source{{Node: "n1", Epoch: 3, SeqLo: 1, SeqHi: 5}, {Node: "n2", Epoch: 1, SeqLo: 2, SeqHi: 9}}
	b.Complete()
	return b
}

func put(t fataler, b bucket.Bucket, name, data string) {
	t.Helper()
	if err := b.Put(ctx, name, strings.NewReader(data), int64(len(data))); err != nil {
		t.Fatal(err)
	}
}

// merge puts a block's object and lets it replace others.
func merge(t fataler, c *Catalog, b Block, replaces ...string) {
	t.Helper()
	put(t, c.b, ObjectName(b.ID), "block "+b.ID)
	if err := c.Replace(ctx, replaces, []Block{b}); err != nil {
		t.Fatal(err)
	}
}

// abandon leaves the upload of a block without a commit.
func abandon(t fataler, b bucket.Bucket, id string) {
	t.Helper()
	put(t, b, markerName(id), id)
	put(t, b, ObjectName(id), "x")
}

// ship puts a block's object and commits it.
func ship(t fataler, c *Catalog, b Block) {
	t.Helper()
	put(t, c.b, ObjectName(b.ID), "block "+b.ID)
	if err := commitBlock(c, b); err != nil {
		t.Fatal(err)
	}
}

// commitBlock commits a block whose object is complete.
func commitBlock(c *Catalog, b Block) error {
	_, err := c.commitShip(ctx, shipOf(c, b))
	return err
}

// shipOf is a ship of blocks, as the next one of the journal that all tests share.
func shipOf(c *Catalog, blocks ...Block) *Ship {
	last := c.Covered("n1", 0).To
	return &Ship{Blocks: completed(blocks), Covered: []Coverage{{Node: "n1", From: last + 1, To: last + 9}}}
}

// The first two ships.
const (
	shipA = "catalog/ship-0000000000000001.json"
	shipB = "catalog/ship-0000000000000002.json"
)

func ids(blocks []Block) []string {
	names := []string{}
	for _, b := range blocks {
		names = append(names, b.ID)
	}
	return names
}

// objects lists the bucket without copies, markers and lists of collected records.
func objects(t fataler, b bucket.Bucket) []string {
	t.Helper()
	names := []string{}
	err := b.List(ctx, "", func(name string, _ int64) error {
		if !strings.HasPrefix(name, CopyPrefix) && !strings.HasPrefix(name, UploadPrefix) && !strings.HasPrefix(name, CollectedPrefix) {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func TestCommitReopen(t *testing.T) {
	b := memory(t)
	c := open(t, b, nil)
	want := block("b1", 100, 200)
	ship(t, c, want)
	ship(t, c, block("b0", math.MinInt64, 150))
	ship(t, c, block("b2", 300, math.MaxInt64))
	for what, c := range map[string]*Catalog{"committed": c, "reopened": open(t, b, nil)} {
		if got := ids(c.Live()); !slices.Equal(got, []string{"b0", "b1", "b2"}) {
			t.Fatalf("%s: %v", what, got)
		}
		want.OrderLo, want.OrderHi, want.Record = 1, 1, shipID(1)
		if diff := cmp.Diff(want, c.Live()[1]); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		for _, test := range []struct {
			min, max int64
			signal   model.Signal
			tenant   string
			want     []string
		}{
			{200, 300, model.Metrics, "a", []string{"b1", "b2"}},
			{151, 151, model.Metrics, "b", []string{"b1"}},
			{201, 299, model.Metrics, "a", []string{}},
			{math.MinInt64, math.MaxInt64, model.Metrics, "a", []string{"b0", "b1", "b2"}},
			{math.MinInt64, math.MaxInt64, model.Metrics, "c", []string{}},
			{math.MinInt64, math.MaxInt64, model.Logs, "a", []string{}},
		} {
			got := ids(c.Overlapping(model.TimeRange{Min: test.min, Max: test.max}, test.signal, test.tenant))
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: %+v: %v", what, test, got)
			}
		}
	}
}

func TestManyTenants(t *testing.T) {
	b := memory(t)
	c := open(t, b, nil)
	many := block("b", 1, 2)
	many.Tenants, many.TenantCount = nil, 0
	for i := range entry.MaxTenants + 1 {
		many.Tenants = append(many.Tenants, fmt.Sprint("tenant-", i))
	}
	ship(t, c, many)
	got := open(t, b, nil).Live()[0]
	if got.Tenants != nil || got.TenantCount != entry.MaxTenants+1 || !got.HasTenant("tenant-7") || got.HasTenant("tenants") || got.HasTenant("a") {
		t.Errorf("%d tenants of %d are kept", len(got.Tenants), got.TenantCount)
	}
}

// TestLostAck repeats a commit whose response was lost.
func TestLostAck(t *testing.T) {
	b := memory(t)
	c := open(t, b, nil)
	ship(t, c, block("a", 1, 2))
	for _, kind := range []fault.Kind{fault.LostAck, fault.Fail, fault.Partial} {
		b.Add(fault.Rule{Kind: kind, Op: fault.PutIfAbsent, Prefix: "catalog/", Times: 1})
		b.Add(fault.Rule{Kind: fault.Fail, Op: fault.Get, Prefix: "catalog/", Times: 1}) // nor does a look help
		name := fmt.Sprint("c", kind)
		if err := commitBlock(c, block(name, 1, 2)); !errors.Is(err, model.ErrTransient) {
			t.Fatal(err)
		}
		order := uint64(0)
		if kind == fault.LostAck {
			visible := open(t, b, nil).Live()
			if got := ids(visible); !slices.Contains(got, name) {
				t.Fatalf("%v", got)
			}
			order = visible[slices.Index(ids(visible), name)].Order()
		}
		ship(t, c, block("between"+name, 1, 2))
		if err := commitBlock(c, block(name, 1, 2)); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*Catalog{c, open(t, b, nil)} {
			i := slices.Index(ids(c.Live()), name)
			if i < 0 || order != 0 && c.Live()[i].Order() != order {
				t.Fatalf("%v: %v, not in order %d", ids(c.Live()), i, order)
			}
		}
		b.Add(fault.Rule{Kind: kind, Op: fault.Put, Prefix: "catalog/", Times: 1})
		if err := c.Replace(ctx, []string{name}, []Block{merged("m"+name, 1, 2)}); !errors.Is(err, model.ErrTransient) {
			t.Fatal(err)
		}
		if err := c.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		if err := c.Replace(ctx, []string{name}, []Block{merged("m"+name, 1, 2)}); (kind == fault.LostAck) != errors.Is(err, ErrReplaced) {
			t.Fatal(err)
		}
		if got := ids(open(t, b, nil).Live()); slices.Contains(got, name) || !slices.Contains(got, "m"+name) {
			t.Fatalf("%v", got)
		}
	}
}

func TestRefresh(t *testing.T) {
	b := memory(t)
	mine, now := open(t, b, nil), int64(1e9)
	theirs := open(t, b, &now)
	ship(t, theirs, block("a", 1, 2))
	if err := mine.Refresh(ctx); err != nil || !slices.Equal(ids(mine.Live()), []string{"a"}) {
		t.Fatal(ids(mine.Live()), err)
	}
	merge(t, theirs, merged("b", 1, 2), "a")
	ship(t, theirs, block("c", 3, 4)) // so that the record of a may go
	now += int64(31 * time.Hour)
	if err := theirs.Expire(ctx, olderThan(math.MinInt64), time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := mine.Refresh(ctx); err != nil || !slices.Equal(ids(mine.Live()), []string{"b", "c"}) || len(mine.records) != 2 || len(mine.holder) != 2 {
		t.Fatal(ids(mine.Live()), len(mine.records), err)
	}
}

func TestOpenErrors(t *testing.T) {
	good, err := (&commit{id: "x", committed: 1, blocks: []Block{merged("x", 1, 2)}}).encode()
	if err != nil {
		t.Fatal(err)
	}
	data := good
	if good, err = checksum.Unseal(data); err != nil {
		t.Fatal(err)
	}
	change := func(old, new string) string {
		changed := strings.Replace(string(good), old, new, 1)
		if changed == string(good) {
			t.Fatalf("there is no %s", old)
		}
		return changed
	}
	for what, test := range map[string]struct {
		name, data string
		class      error
	}{
		"version":  {"catalog/x.json", change(`"version": 2`, `"version": 1`), model.ErrInvalid},
		"field":    {"catalog/x.json", change(`"seq_lo"`, `"seq_low"`), model.ErrCorrupt},
		"signal":   {"catalog/x.json", change(`"metrics"`, `"traces"`), model.ErrCorrupt},
		"key":      {"catalog/x.json", change(`"key_min": "0`, `"key_min": "`), model.ErrCorrupt},
		"id":       {"catalog/y.json", string(good), model.ErrCorrupt},
		"cut":      {"catalog/x.json", string(good[:len(good)/2]), model.ErrCorrupt},
		"empty":    {"catalog/x.json", "", model.ErrCorrupt},
		"more":     {"catalog/x.json", string(good) + "{}", model.ErrCorrupt},
		"nothing":  {"catalog/x.json", `{"version": 2, "id": "x", "committed": 1}`, model.ErrCorrupt},
		"itself":   {"catalog/x.json", change(`"blocks"`, `"replaces": ["x"], "blocks"`), model.ErrCorrupt},
		"seq":      {"catalog/x.json", change(`"seq_hi": 9`, `"seq_hi": 4611686018427387904`), model.ErrCorrupt},
		"order":    {"catalog/x.json", change(`"order_hi": 11`, `"order_hi": 4611686018427387904`), model.ErrCorrupt},
		"disorder": {"catalog/x.json", change(`"order_lo": 2`, `"order_lo": 12`), model.ErrCorrupt},
		"future":   {"catalog/x.json", change(`"generation": 4`, `"generation": 4611686018427387904`), model.ErrCorrupt},
		"tenants":  {"catalog/x.json", change(`"first_tenant": "a"`, `"first_tenant": "b"`), model.ErrCorrupt},
		"group":    {"catalog/x.json", change(`"group": "default"`, `"group": ""`), model.ErrCorrupt},
		"sources":  {"catalog/x.json", regexp.MustCompile(`(?s)"sources": \[.*?\],`).ReplaceAllString(string(good), ""), model.ErrCorrupt},
		"escape":   {"catalog/x.json", `{"version": 2, "id": "x", "committed": 1, "replaces": ["../x"]}`, model.ErrCorrupt},
		"stranger": {"catalog/notes.txt", "hello", model.ErrCorrupt},
	} {
		b := memory(t)
		put(t, b, test.name, string(checksum.Seal([]byte(test.data))))
		if _, err := Open(ctx, b, Options{}); !errors.Is(err, test.class) || !strings.Contains(err.Error(), test.name) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// Every flipped bit is detected.
	for i := range data {
		flipped := slices.Clone(data)
		flipped[i] ^= 1 << (i % 8)
		b := memory(t)
		put(t, b, "catalog/x.json", string(flipped))
		if _, err := Open(ctx, b, Options{}); !errors.Is(err, model.ErrCorrupt) {
			t.Fatalf("with byte %d as %q: %v", i, flipped[i], err)
		}
	}
	b := memory(t)
	ship(t, open(t, b, nil), block("x", 1, 2))
	for _, op := range []fault.Op{fault.List, fault.Get} {
		b.Add(fault.Rule{Kind: fault.Fail, Op: op, Times: 1})
		if _, err := Open(ctx, b, Options{}); !errors.Is(err, model.ErrTransient) {
			t.Errorf("%s: %v", op, err)
		}
	}
	if err := commitBlock(open(t, b, nil), block("../x", 1, 2)); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a bad id: %v", err)
	}
}

func TestExpire(t *testing.T) {
	b, now := memory(t), int64(1000)
	c := open(t, b, &now)
	ship(t, c, block("old", 1, 99))
	ship(t, c, block("half", 50, 100))
	ship(t, c, block("new", 100, 200))
	const grace = 500 * time.Nanosecond
	if err := c.Expire(ctx, olderThan(100), grace); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Catalog{c, open(t, b, nil)} {
		if got := ids(c.Live()); !slices.Equal(got, []string{"half", "new"}) {
			t.Fatalf("%v", got)
		}
	}
	if !slices.Contains(objects(t, b), "blocks/old") {
		t.Fatal("the block went before its grace was over")
	}
	now += int64(shipsKept + shipsLeave)
	// The next call retries a failed deletion, and no row reappears in between.
	for _, prefix := range []string{"blocks/", "catalog/ship", "catalog/expired"} {
		b.Add(fault.Rule{Kind: fault.LostAck, Op: fault.Delete, Prefix: prefix, Times: 1})
		if err := c.Expire(ctx, olderThan(100), grace); !errors.Is(err, model.ErrTransient) {
			t.Fatal(err)
		}
		if got := ids(open(t, b, nil).Live()); !slices.Equal(got, []string{"half", "new"}) {
			t.Fatalf("%v", got)
		}
	}
	if err := c.Expire(ctx, olderThan(100), grace); err != nil {
		t.Fatal(err)
	}
	want := []string{"blocks/half", "blocks/new", shipB, recordName(shipID(3))}
	if got := objects(t, b); !slices.Equal(got, want) {
		t.Fatalf("%v", got)
	}
}

// TestExpireChain has a block that was merged, and merged again.
func TestExpireChain(t *testing.T) {
	b, now := memory(t), int64(1000)
	c := open(t, b, &now)
	ship(t, c, block("a", 1, 99))
	merge(t, c, merged("b", 1, 99), "a")
	merge(t, c, merged("c", 1, 99), "b")
	ship(t, c, block("d", 1, 99)) // so that the record of a may go
	now += int64(shipsKept + shipsLeave)
	b.Add(fault.Rule{Kind: fault.Fail, Op: fault.Delete, Prefix: "blocks/a"})
	if err := c.Expire(ctx, olderThan(math.MinInt64), 0); !errors.Is(err, model.ErrTransient) {
		t.Fatal(err)
	}
	if got := ids(open(t, b, nil).Live()); !slices.Equal(got, []string{"c", "d"}) {
		t.Fatalf("%v", got)
	}
	b.Clear()
	if err := c.Expire(ctx, olderThan(math.MinInt64), 0); err != nil {
		t.Fatal(err)
	}
	if got := objects(t, b); !slices.Equal(got, []string{"blocks/c", "blocks/d", recordName(entry.ListID("merged", []string{"b"}, []string{"c"})), recordName(shipID(12))}) {
		t.Fatalf("%v", got)
	}
}

// TestRandom commits, merges and expires over a bucket that fails and loses responses. A freshly opened
// catalogue always sees each row once: the live blocks are those of a simple model, or, while a commit is
// uncertain, those after it. Every visible block has its object.
func TestRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, now := memory(t), int64(0)
		c := open(t, b, &now)
		want := map[string]Block{}
		for step := range rapid.IntRange(1, 30).Draw(t, "steps") {
			now += int64(rapid.IntRange(0, 10).Draw(t, "pass"))
			b.Clear()
			if rapid.Bool().Draw(t, "faulty") {
				b.Add(fault.Rule{
					Kind: rapid.SampledFrom([]fault.Kind{fault.Fail, fault.LostAck}).Draw(t, "kind"),
					Op:   rapid.SampledFrom([]fault.Op{fault.Put, fault.PutIfAbsent, fault.Delete}).Draw(t, "op"),
					Skip: rapid.IntRange(0, 3).Draw(t, "skip"), Times: 1,
				})
			}
			if rapid.IntRange(0, 2).Draw(t, "what") == 0 {
				before := now - int64(rapid.IntRange(0, 40).Draw(t, "retention"))
				err := c.Expire(ctx, olderThan(before), 15)
				if err == nil || len(ids(c.Live())) < len(want) {
					for id, blk := range want {
						if blk.Range.Max < before {
							delete(want, id)
						}
					}
				} else if !errors.Is(err, model.ErrTransient) {
					t.Fatal(err)
				}
				if err != nil { // the tombstone may exist although its response was lost
					c = open(t, b, &now)
					for id := range want {
						if !slices.Contains(ids(c.Live()), id) && want[id].Range.Max < before {
							delete(want, id)
						}
					}
				}
			} else {
				blk := block(fmt.Sprintf("b%03d", step), now, now+int64(rapid.IntRange(0, 20).Draw(t, "span")))
				var replaces []string
				for id := range want {
					if rapid.IntRange(0, 3).Draw(t, "merge") == 0 {
						replaces = append(replaces, id)
					}
				}
				blocks := []Block{blk}
				if len(replaces) > 0 {
					blocks = append(blocks, block(fmt.Sprintf("c%03d", step), now, now))
				}
				for _, blk := range blocks {
					repeat(t, func() error {
						return b.Put(ctx, ObjectName(blk.ID), strings.NewReader("x"), 1)
					})
					want[blk.ID] = blk
				}
				repeat(t, func() error {
					if len(replaces) == 0 {
						return commitBlock(c, blk)
					}
					err := errors.Join(c.Refresh(ctx), c.Replace(ctx, replaces, blocks))
					if errors.Is(err, ErrReplaced) && c.Has(blk.ID) {
						return nil
					}
					return err
				})
				for _, id := range replaces {
					delete(want, id)
				}
			}
			if rapid.Bool().Draw(t, "reopen") {
				c = open(t, b, &now)
			}
			got := ids(c.Live())
			slices.Sort(got)
			expect := []string{}
			for id := range want {
				expect = append(expect, id)
			}
			slices.Sort(expect)
			if !slices.Equal(got, expect) {
				t.Fatalf("step %d: %v, not %v", step, got, expect)
			}
			for _, id := range got {
				if _, err := b.Get(ctx, ObjectName(id)); err != nil {
					t.Fatal(err)
				}
			}
		}
		// In the end every block is deleted.
		b.Clear()
		now += int64(2 * shipsKept)
		for range 2 {
			if err := c.Expire(ctx, olderThan(math.MaxInt64), 0); err != nil {
				t.Fatal(err)
			}
		}
		if got := objectsBelow(t, b, BlockPrefix); len(got) != 0 {
			t.Fatalf("%v are left", got)
		}
	})
}

func repeat(t *rapid.T, f func() error) {
	for range 3 {
		err := f()
		if err == nil {
			return
		}
		if !errors.Is(err, model.ErrTransient) {
			t.Fatal(err)
		}
	}
	t.Fatal("it fails again and again")
}

// olderThan is a retention that is the same for all blocks.
func olderThan(before int64) func(*Block) bool {
	return func(b *Block) bool { return b.Newest() < before }
}

// panicking is a bucket that panics over the objects of a prefix, while there is one.
type panicking struct {
	bucket.Bucket
	over string
}

func (b *panicking) Get(ctx context.Context, name string) ([]byte, error) {
	if b.over != "" && strings.HasPrefix(name, b.over) {
		panic("a hostile object")
	}
	return b.Bucket.Get(ctx, name)
}

// TestPanics: a panic over a record is an error, after which the catalogue is as before. Once it is over, the
// record is known.
func TestPanics(t *testing.T) {
	inner := memory(t)
	b := &panicking{Bucket: inner}
	c, other := open(t, b, nil), open(t, inner, nil)
	if _, err := other.Delete(ctx, deletion("x", 0, 1)); err != nil {
		t.Fatal(err)
	}
	known := func() int {
		_, all := c.Snapshot()
		return len(all)
	}
	b.over = RecordPrefix
	for range 2 {
		if err := c.Refresh(ctx); err == nil || !strings.Contains(err.Error(), "unexpected error: a hostile object") {
			t.Error(err)
		}
		if n := known(); n != 0 {
			t.Errorf("%d deletions are known", n)
		}
	}
	b.over = ""
	if err := c.Refresh(ctx); err != nil || known() != 1 {
		t.Errorf("%v, %d deletions are known", err, known())
	}
}
