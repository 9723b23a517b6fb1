package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/fault"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/move/bucketcopy"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/deletion"
)

// watched calls a function before each request that reads ranges or changes something.
type watched struct {
	bucket.Bucket
	before func() error
}

func (w *watched) Put(ctx context.Context, name string, r io.Reader, size int64) error {
	if err := w.before(); err != nil {
		return err
	}
	return w.Bucket.Put(ctx, name, r, size)
}

func (w *watched) PutIfAbsent(ctx context.Context, name string, data []byte) (bool, error) {
	if err := w.before(); err != nil {
		return false, err
	}
	return w.Bucket.PutIfAbsent(ctx, name, data)
}

func (w *watched) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	if err := w.before(); err != nil {
		return nil, err
	}
	return w.Bucket.GetRange(ctx, name, off, n)
}

func (w *watched) Delete(ctx context.Context, name string) error {
	if err := w.before(); err != nil {
		return err
	}
	return w.Bucket.Delete(ctx, name)
}

// copied is a source with what it has, and the target of copies.
type copied struct {
	*setup
	target bucket.Bucket
	values map[string]bool // that were pushed and not deleted
	pushed int
}

func newCopied(t *testing.T) *copied {
	c := &copied{setup: newSetup(t, func(o *EngineOptions) { o.FS = vfs.NewMem() }), values: map[string]bool{}}
	c.renew(t)
	return c
}

// renew begins a new target.
func (c *copied) renew(t *testing.T) {
	b, err := bucketfs.New(vfs.NewMem(), "/copy")
	must(t, err)
	c.target = b
}

// add pushes values of two series and ships them.
func (c *copied) add(t *testing.T) {
	for range 3 {
		c.pushed++
		name := []string{"keep", "drop"}[c.pushed%2]
		must(t, c.push("a", model.LabelsOf("__name__", name), c.now, float64(c.pushed)))
		c.values[name+fmt.Sprint(c.pushed)] = true
		c.now += int64(time.Minute)
	}
	must(t, c.Ship())
}

// merge lets hours pass, in which blocks are merged and collected.
func (c *copied) merge(t *testing.T) {
	for range 4 {
		c.now += int64(5 * time.Hour)
		must(t, c.Compact(context.Background()))
		must(t, c.catalog.Expire(context.Background(), olderThan(math.MinInt64), time.Minute))
	}
}

// drop deletes what one of the series has.
func (c *copied) drop(t *testing.T) {
	_, err := c.catalog.Delete(context.Background(), catalog.Deletion{Deletion: deletion.Deletion{
		Signal: model.Metrics, Tenant: "a", Range: model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64},
		Matchers: []catalog.Matcher{{Name: "__name__", Op: model.MatchEqual, Value: "drop"}},
	}})
	must(t, err)
	maps.DeleteFunc(c.values, func(v string, _ bool) bool { return strings.HasPrefix(v, "drop") })
}

// copy copies the bucket, through wrappers.
func (c *copied) copy(from, to bucket.Bucket) (*bucketcopy.Report, error) {
	return (&bucketcopy.Copy{From: from, To: to, Concurrency: 2}).Run(context.Background())
}

// inTarget returns the values that a server finds in the target.
func (c *copied) inTarget(t *testing.T) (map[string]bool, error) {
	o := c.o
	o.FS, o.Bucket = vfs.NewMem(), c.target
	e, err := OpenEngine(context.Background(), o)
	if err != nil {
		return nil, err
	}
	defer func() { must(t, e.Close()) }()
	got, err := ask(e, question{tenant: "a", signal: model.Metrics, family: model.Samples, rg: model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64}})
	values := map[string]bool{}
	for id, rows := range got {
		name := string(model.Labels(id.Labels).Get("__name__"))
		for _, r := range rows {
			values[name+fmt.Sprint(math.Float64frombits(r.Bits))] = true
		}
	}
	return values, err
}

// nothingInTarget reports whether the target has no object.
func (c *copied) nothingInTarget(t *testing.T) bool {
	objects := 0
	must(t, c.target.List(context.Background(), "", func(string, int64) error {
		objects++
		return nil
	}))
	return objects == 0
}

// TestCopyOfABucketInUse copies a bucket while its rows are shipped, merged, deleted and collected, and kills
// copies at random requests. A complete copy has what the source has; one that was killed is refused, or has
// what an earlier copy had.
func TestCopyOfABucketInUse(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	c := newCopied(t)
	errKilled := errors.New("killed")
	var before map[string]bool // what the last complete copy had, and is not deleted; nil: there is none
	rounds := 40
	if testing.Short() {
		rounds = 12
	}
	killed, complete := 0, 0
	for range rounds {
		for range 1 + r.IntN(3) {
			[]func(*testing.T){c.add, c.add, c.merge, c.drop}[r.IntN(4)](t)
		}
		var reads, writes atomic.Int64
		changeAt, killAt := int64(r.IntN(12)), int64(r.IntN(60))
		from := &watched{c.o.Bucket, func() error {
			if reads.Add(1) == changeAt {
				c.merge(t)
			}
			return nil
		}}
		to := &watched{c.target, func() error {
			if writes.Add(1) > killAt {
				return errKilled
			}
			return nil
		}}
		_, err := c.copy(from, to)
		if errors.Is(err, errKilled) && c.nothingInTarget(t) {
			killed++
			continue // an engine would take the folder for a new bucket, and give it a seed
		}
		got, asked := c.inTarget(t)
		switch {
		case err == nil:
			complete++
			must(t, asked)
			if !maps.Equal(got, c.values) {
				t.Fatalf("the copy has %d values %v, expected %d %v", len(got), slices.Sorted(maps.Keys(got)), len(c.values), slices.Sorted(maps.Keys(c.values)))
			}
			before = maps.Clone(got)
		case !errors.Is(err, errKilled):
			t.Fatal(err)
		case before == nil:
			killed++
			if asked == nil && len(got) > 0 { // killed between the seed and its copy, the last two objects
				if !maps.Equal(got, c.values) {
					t.Fatalf("a target without a complete copy has %v", got)
				}
				before = maps.Clone(got)
			}
		default:
			killed++
			must(t, asked)
			for v := range before {
				if c.values[v] && !got[v] {
					t.Fatalf("after a copy that was killed at request %d, %s is missing", killAt, v)
				}
			}
		}
	}
	t.Logf("%d copies were complete, %d were killed", complete, killed)
	_, err := c.copy(c.o.Bucket, c.target)
	must(t, err)
	if got, err := c.inTarget(t); err != nil || !maps.Equal(got, c.values) {
		t.Fatalf("%v, %v", got, err)
	}
	must(t, c.Close())
}

// TestCopyRefuses lists what a copy refuses, with the words that a user needs.
func TestCopyRefuses(t *testing.T) {
	c := newCopied(t)
	c.add(t)
	other := newSetup(t, nil)
	must(t, other.push("a", up, other.now, 1))
	must(t, other.Ship())
	defer func() { must(t, errors.Join(c.Close(), other.Close())) }()
	object := func(b bucket.Bucket, name, text string) {
		must(t, b.Put(context.Background(), name, strings.NewReader(text), int64(len(text))))
	}
	for what, f := range map[string]func() (from, to bucket.Bucket, want string){
		"another bucket": func() (bucket.Bucket, bucket.Bucket, string) {
			return c.o.Bucket, other.o.Bucket, "the target is another bucket: its seed is"
		},
		"no bucket": func() (bucket.Bucket, bucket.Bucket, string) {
			empty, err := bucketfs.New(vfs.NewMem(), "/empty")
			must(t, err)
			return empty, c.target, "the source has no seed"
		},
		"a folder with other files": func() (bucket.Bucket, bucket.Bucket, string) {
			object(c.target, "holiday.jpg", "x")
			return c.o.Bucket, c.target, "neither empty nor a bucket of Shale: it has the object holiday.jpg"
		},
		"a damaged block": func() (bucket.Bucket, bucket.Bucket, string) {
			b := damagedBucket{c.o.Bucket}
			return b, c.target, "source: block"
		},
		"a target that returns other bytes": func() (bucket.Bucket, bucket.Bucket, string) {
			return c.o.Bucket, damagedBucket{c.target}, "does not return what was written"
		},
		"a target that a server has written to": func() (bucket.Bucket, bucket.Bucket, string) {
			_, err := c.copy(c.o.Bucket, c.target)
			must(t, err)
			o := c.o
			o.FS, o.Bucket = vfs.NewMem(), c.target
			e, err := OpenEngine(context.Background(), o)
			must(t, err)
			s := &setup{Engine: e, now: c.now, o: o}
			must(t, s.push("a", up, s.now, 1))
			must(t, s.Ship())
			must(t, s.Close())
			return c.o.Bucket, c.target, "a server has written to the target"
		},
		"a lost record": func() (bucket.Bucket, bucket.Bucket, string) {
			lost := newSetup(t, func(o *EngineOptions) { o.FS = vfs.NewMem() })
			must(t, lost.push("a", up, lost.now, 1))
			must(t, lost.Ship())
			must(t, lost.o.Bucket.List(context.Background(), "catalog/", func(name string, _ int64) error {
				return lost.o.Bucket.Delete(context.Background(), name)
			}))
			must(t, lost.Close())
			return lost.o.Bucket, c.target, "wrong; look there"
		},
	} {
		t.Run(what, func(t *testing.T) {
			c.renew(t)
			from, to, want := f()
			if _, err := c.copy(from, to); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, expected %q", err, want)
			}
		})
	}
}

// damagedBucket changes a byte in the middle of blocks that are read.
type damagedBucket struct{ bucket.Bucket }

func (b damagedBucket) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	data, err := b.Bucket.GetRange(ctx, name, off, n)
	if at := int64(100); err == nil && off <= at && at < off+n && strings.HasPrefix(name, "blocks/") {
		data = slices.Clone(data)
		data[at-off] ^= 1
	}
	return data, err
}

// TestCopyOverTransientErrors: single failures, and responses that are lost, do not end a copy.
func TestCopyOverTransientErrors(t *testing.T) {
	c := newCopied(t)
	c.add(t)
	c.merge(t)
	c.add(t)
	for _, op := range []fault.Op{fault.Put, fault.PutIfAbsent, fault.GetRange, fault.Delete} {
		for _, kind := range []fault.Kind{fault.Fail, fault.LostAck} {
			c.renew(t)
			_, err := c.copy(fault.New(c.o.Bucket, fault.Rule{Kind: fault.Fail, Op: fault.GetRange, Times: 1}), fault.New(c.target, fault.Rule{Kind: kind, Op: op, Times: 2}))
			must(t, err)
			if got, err := c.inTarget(t); err != nil || !maps.Equal(got, c.values) {
				t.Errorf("%s: %v, %v", op, got, err)
			}
		}
	}
	must(t, c.Close())
}
