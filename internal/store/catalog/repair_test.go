package catalog

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/repair"
)

// repairer reads blocks that begin with "block", as those of shipSized do.
func repairer(b bucket.Bucket, now int64) *Repairer {
	read := func(ctx context.Context, id string) error {
		data, err := b.Get(ctx, ObjectName(id))
		if err == nil && string(data[:5]) != "block" {
			err = model.ErrCorrupt
		}
		return err
	}
	return &Repairer{
		Bucket: b, Now: now, Damaged: map[string]error{}, Forgotten: true,
		Check: func(ctx context.Context, b *Block) error { return read(ctx, b.ID) },
		Describe: func(ctx context.Context, id string, size int64) (Block, error) {
			x := block(id, 5, 6)
			x.Bytes = size
			return x, read(ctx, id)
		},
	}
}

// bucketOfBlocks has a seed and the blocks a and b.
func bucketOfBlocks(t *testing.T, mem bucket.Bucket, now *int64) (*fault.Bucket, *Catalog) {
	t.Helper()
	b := memory(t)
	c := openWith(t, b, mem, now)
	if _, err := EnsureSeed(ctx, b); err != nil {
		t.Fatal(err)
	}
	if err := c.keepSeed(ctx); err != nil {
		t.Fatal(err)
	}
	shipSized(t, b, c, "a")
	shipSized(t, b, c, "b")
	return b, c
}

// TestRepairIsOutdated: a repair that was proposed does nothing if the bucket is a different one by the time
// the operator agrees: because somebody has mended it, or because a server has collected what is damaged.
func TestRepairIsOutdated(t *testing.T) {
	const record, copied, object = shipA, "copies/" + shipA, "blocks/a"
	for what, test := range map[string]struct {
		remove, spoil []string
		collected     bool // else everything is put back
		then          func(t *testing.T, b bucket.Bucket)
	}{
		"no seed":                                 {remove: []string{"seed"}},
		"a damaged seed":                          {spoil: []string{"seed"}},
		"a damaged record":                        {spoil: []string{record}},
		"a damaged record, collected":             {spoil: []string{record}, collected: true},
		"a damaged record without a copy":         {spoil: []string{record}, remove: []string{copied}},
		"a damaged copy":                          {spoil: []string{copied}},
		"a damaged copy, collected":               {spoil: []string{copied}, collected: true},
		"a lost record":                           {remove: []string{record}},
		"a lost record, collected":                {remove: []string{record}, collected: true},
		"a lost record with a damaged copy":       {remove: []string{record}, spoil: []string{copied}},
		"a lost record, its block too":            {remove: []string{record, object}},
		"a lost record, its block too, collected": {remove: []string{record, object}, collected: true},
		"a lost record, and its block is back": {remove: []string{record, object}, then: func(t *testing.T, b bucket.Bucket) {
			put(t, b, object, "block a")
			remove(t, b, record)
		}},
		"a stray block":             {remove: []string{record, copied}},
		"a stray block, collected":  {remove: []string{record, copied}, collected: true},
		"an unreadable stray block": {remove: []string{record, copied}, spoil: []string{object}},
		"an unreadable stray block that is mended": {remove: []string{record, copied}, spoil: []string{object}, then: func(t *testing.T, b bucket.Bucket) {
			remove(t, b, record, copied)
		}},
		"a stray block that is uploaded": {remove: []string{record, copied}, then: func(t *testing.T, b bucket.Bucket) {
			remove(t, b, record, copied)
			put(t, b, markerName("a"), "a")
		}},
		"a stray block with a record of another name": {remove: []string{record, copied}, then: func(t *testing.T, b bucket.Bucket) {
			remove(t, b, record, copied)
			_, data, err := (&commit{id: "merged-a", committed: 1, blocks: []Block{block("a", 5, 6)}}).stored()
			if err != nil {
				t.Fatal(err)
			}
			put(t, b, "catalog/merged-a.json", string(data))
		}},
		"a damaged block": {spoil: []string{object}},
	} {
		t.Run(what, func(t *testing.T) {
			now := int64(1e18)
			b, c := bucketOfBlocks(t, nil, &now)
			a := c.records[shipID(1)]
			whole := contents(t, b)
			for _, name := range test.spoil {
				put(t, b, name, "x"+whole[name][1:])
			}
			remove(t, b, test.remove...)
			s, err := ReadSurvey(ctx, b, nil)
			if err != nil {
				t.Fatal(err)
			}
			r := repairer(b, now)
			if what == "a damaged block" {
				r.Damaged["a"] = model.ErrCorrupt
			}
			plan, _ := r.Propose(ctx, s)
			if len(plan) == 0 {
				t.Fatal("no repair is proposed")
			}
			if test.collected {
				if err := putCollected(ctx, b, now, []*commit{a}, false); err != nil {
					t.Fatal(err)
				}
				remove(t, b, record, copied, object)
			} else {
				putBack(t, b, whole)
			}
			if test.then != nil {
				test.then(t, b)
			}
			before := contents(t, b)
			for _, p := range plan {
				if err := p.Do(ctx); !errors.Is(err, repair.ErrOutdated) {
					t.Errorf("%s: %s: %v", p.Object, p.Action, err)
				}
			}
			if after := contents(t, b); !maps.Equal(before, after) {
				t.Errorf("the bucket was %v and is %v", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
			}
		})
	}
}

// TestRecordCollectedDuringPutBack: a server collects a lost record between the last look of the repair and
// its write. The record does not come back without its block.
func TestRecordCollectedDuringPutBack(t *testing.T) {
	for at := 1; ; at++ {
		now := int64(1e18)
		b, c := bucketOfBlocks(t, nil, &now)
		a := c.records[shipID(1)]
		remove(t, b, shipA)
		s, err := ReadSurvey(ctx, b, nil)
		if err != nil {
			t.Fatal(err)
		}
		i := &interrupted{Bucket: b, left: at, then: func() {
			remove(t, b, "blocks/a")
			if err := putCollected(ctx, b, now, []*commit{a}, false); err != nil {
				t.Fatal(err)
			}
			remove(t, b, "copies/"+shipA, shipA)
		}}
		plan, _ := repairer(i, now).Propose(ctx, s)
		if err := plan[0].Do(ctx); err != nil && !errors.Is(err, repair.ErrOutdated) {
			t.Fatal(err)
		}
		if i.left > 0 {
			return
		}
		if got := objectsBelow(t, b, RecordPrefix); !slices.Equal(got, []string{shipB}) {
			t.Errorf("before request %d: records %v", at, got)
		}
		if got := objectsBelow(t, b, copyName(RecordPrefix)); len(got) != 1 {
			t.Errorf("before request %d: copies %v", at, got)
		}
	}
}

// TestRepairWithoutMemory: a record is not rebuilt while a server may remember the true one. If it is rebuilt
// all the same, the true one counts in every process, and a repair removes the other.
func TestRepairWithoutMemory(t *testing.T) {
	now := int64(1e18)
	mem := memory(t)
	b, c := bucketOfBlocks(t, mem, &now)
	put(t, b, ObjectName("m"), "block m")
	m := merged("m", 1, 6)
	m.Bytes = int64(len("block m"))
	if err := c.Replace(ctx, []string{"a", "b"}, []Block{m}); err != nil {
		t.Fatal(err)
	}
	ship(t, c, block("z", 700, 701)) // so that the records of a and b may go
	remove(t, b, ObjectName("z"))
	put(t, b, ObjectName("z"), strings.Repeat("z", 12345))
	now += int64(31 * time.Hour)
	collect(t, c)
	records := objectsBelow(t, b, RecordPrefix)
	if len(records) != 2 {
		t.Fatalf("records %v", records)
	}
	remove(t, b, records[0], copyName(records[0]))

	propose := func(mem Reader, forgotten bool) (steps []repair.Step, withheld int) {
		s, err := ReadSurvey(ctx, b, mem)
		if err != nil {
			t.Fatal(err)
		}
		r := repairer(b, now)
		r.Forgotten = forgotten
		return r.Propose(ctx, s)
	}
	if steps, withheld := propose(nil, false); len(steps) != 0 || withheld != 1 {
		t.Errorf("without a memory: %d repairs, %d withheld", len(steps), withheld)
	}
	steps, withheld := propose(nil, true)
	if len(steps) != 1 || withheld != 0 {
		t.Fatalf("without any memory left: %d repairs, %d withheld", len(steps), withheld)
	}
	if err := steps[0].Do(ctx); err != nil {
		t.Fatal(err)
	}
	for range 10 { // the order of records in a map is random
		for _, p := range []*Catalog{c, openWith(t, b, mem, &now)} {
			if refresh(t, p); len(p.Live()) != 2 || p.Live()[0].OrderHi != m.OrderHi || p.Live()[0].Generation != m.Generation {
				t.Fatalf("live are %+v", p.Live())
			}
		}
	}
	steps, _ = propose(mem, false)
	for _, p := range steps {
		if err := p.Do(ctx); err != nil {
			t.Fatalf("%s: %s: %v", p.Object, p.Action, err)
		}
	}
	if got := objectsBelow(t, b, RecordPrefix); !slices.Equal(got, records) {
		t.Errorf("records %v, expected %v", got, records)
	}
	if s, err := ReadSurvey(ctx, b, mem); err != nil || len(s.Problems) > 0 {
		t.Errorf("%v, %v", s.Problems, err)
	}
	for range 4 {
		now += int64(30 * time.Hour)
		collect(t, c)
		if !c.Has("m") || len(c.lost)+len(c.strays) > 0 || len(objectsBelow(t, b, BlockPrefix)) != 2 {
			t.Fatalf("live are %v, lost %v, strays %v", ids(c.Live()), lostOf(c), c.strays)
		}
	}
}
