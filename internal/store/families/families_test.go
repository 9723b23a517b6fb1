package families

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/fault"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/head/metadata"
)

var limits = metadata.Limits{Families: 1000, TenantBytes: 1 << 20, Bytes: 1 << 20}

func newBucket(t *testing.T) bucket.Bucket {
	t.Helper()
	b, err := bucketfs.New(vfs.NewMem(), "bucket")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, b bucket.Bucket) *Writer {
	t.Helper()
	w, err := OpenWriter(t.Context(), WriterOptions{Bucket: b, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// kill ends a writer without its last object.
func (w *Writer) kill() {
	w.stop()
	w.done.Wait()
}

func names(t *testing.T, b bucket.Bucket) (all []string) {
	t.Helper()
	if err := b.List(t.Context(), catalog.FamilyPrefix, func(name string, _ int64) error {
		all = append(all, name)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// content returns what a reader has of a tenant.
func content(t *testing.T, r *Reader, tenant string) map[string]model.Metadata {
	t.Helper()
	all := map[string]model.Metadata{}
	warning, err := r.Metadata(tenant, "", func(family string, m model.Metadata) bool {
		all[family] = m
		return true
	})
	if warning != "" || err != nil {
		t.Fatalf("warning %q, error %v", warning, err)
	}
	return all
}

// TestLikeOneMap: several writers are told of families, end, are killed after they have written, and start,
// and the bucket fails now and then. A reader has what one map has that was told everything, and the objects
// of writers that are gone go.
func TestLikeOneMap(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			b := fault.New(newBucket(t))
			r := OpenReader(t.Context(), ReaderOptions{Bucket: b, Limits: limits})
			defer r.Close()
			model1 := metadata.New(limits)
			writers := []*Writer{write(t, b), write(t, b)}
			for step := range 60 {
				time.Sleep(time.Second)
				i := random.IntN(len(writers))
				m := model.Metadata{Type: "counter", Help: fmt.Sprint("text ", random.IntN(3)), Unit: ""}
				if random.IntN(4) == 0 {
					m.Help = "" // keeps the help
				}
				tenant, family := fmt.Sprint("t", random.IntN(2)), fmt.Sprint("f", random.IntN(9))
				if m.Help == "" { // only its own writer knows the help for certain
					family = fmt.Sprint("own", i)
				}
				if err := writers[i].PutMetadata(tenant, family, m); err != nil {
					t.Fatal(err)
				}
				_ = model1.Put(tenant, family, m, time.Now().UnixNano())
				b.Clear()
				switch random.IntN(12) {
				case 0: // killed, after it has written
					time.Sleep(time.Minute)
					writers[i].kill()
					writers[i] = write(t, b)
				case 1:
					if err := writers[i].Close(); err != nil {
						t.Fatal(err)
					}
					writers[i] = write(t, b)
				case 2:
					b.Add(fault.Rule{Kind: fault.Kind(random.IntN(2)), Prefix: catalog.FamilyPrefix, Op: []fault.Op{fault.Put, fault.List, fault.Get}[random.IntN(3)], Times: 1})
					time.Sleep(30 * time.Second)
				}
				if step%20 == 19 {
					time.Sleep(time.Duration(random.IntN(30)) * time.Hour)
				}
			}
			time.Sleep(time.Minute)
			for _, tenant := range []string{"t0", "t1"} {
				want := map[string]model.Metadata{}
				model1.Each(tenant, "", func(family string, m model.Metadata) bool {
					want[family] = m
					return true
				})
				if diff := cmp.Diff(want, content(t, r, tenant)); diff != "" {
					t.Fatalf("seed %d: tenant %s: %s", seed, tenant, diff)
				}
			}
			time.Sleep(27 * time.Hour)
			if got := names(t, b); len(got) > len(writers) {
				t.Errorf("seed %d: %d objects of %d writers: %v", seed, len(got), len(writers), got)
			}
			for _, w := range writers {
				w.kill()
			}
		})
	}
}

// TestLostAck: what is told after a write whose answer was lost reaches readers that have read that write.
func TestLostAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fault.New(newBucket(t))
		b.Add(fault.Rule{Kind: fault.LostAck, Op: fault.Put, Prefix: catalog.FamilyPrefix, Times: 1})
		w := write(t, b)
		defer w.kill()
		r := OpenReader(t.Context(), ReaderOptions{Bucket: b, Limits: limits, Every: time.Second})
		defer r.Close()
		tell := func(family string) {
			t.Helper()
			if err := w.PutMetadata("t", family, model.Metadata{Type: "gauge"}); err != nil {
				t.Fatal(err)
			}
		}
		tell("a")
		time.Sleep(saveEvery + 2*time.Second)
		if got := content(t, r, "t"); len(got) != 1 {
			t.Fatalf("the write was not carried out: %v", got)
		}
		tell("b")
		time.Sleep(time.Minute)
		if got := content(t, r, "t"); len(got) != 2 {
			t.Errorf("a reader has %v", got)
		}
		time.Sleep(2 * tidyEvery)
		if got := names(t, b); len(got) != 1 {
			t.Errorf("one writer has %v", got)
		}
	})
}

// TestDamage: an object that cannot be read is said with answers, and neither deleted nor in the way.
func TestDamage(t *testing.T) {
	b := newBucket(t)
	w := write(t, b)
	if err := w.PutMetadata("t", "up", model.Metadata{Type: "gauge", Help: "whether"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	bad := object{"OTHER", 3}
	data, err := encode([]metadata.Described{{Tenant: "t", Family: "down", Seen: 1}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := b.Put(t.Context(), bad.name(), bytes.NewReader(data), int64(len(data))); err != nil {
		t.Fatal(err)
	}
	w = write(t, b)
	defer w.kill()
	if err := w.tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := OpenReader(t.Context(), ReaderOptions{Bucket: b, Limits: limits})
	defer r.Close()
	n := 0
	warning, err := r.Metadata("t", "", func(string, model.Metadata) bool {
		n++
		return true
	})
	if err != nil || n != 1 || !strings.Contains(warning, bad.name()) {
		t.Errorf("%d families, warning %q, error %v", n, warning, err)
	}
}

// TestNeverRead: before the bucket was read, an answer is refused, and not empty.
func TestNeverRead(t *testing.T) {
	b := fault.New(newBucket(t))
	b.Add(fault.Rule{Op: fault.List})
	r := OpenReader(t.Context(), ReaderOptions{Bucket: b, Limits: limits})
	defer r.Close()
	if _, err := r.Metadata("t", "", func(string, model.Metadata) bool { return true }); !errors.Is(err, model.ErrTransient) {
		t.Errorf("got %v", err)
	}
	if _, err := OpenWriter(context.Background(), WriterOptions{Bucket: b, Limits: limits}); !errors.Is(err, model.ErrTransient) {
		t.Errorf("a writer: %v", err)
	}
}

// TestLimits: texts that are too long and too many families are refused, as by a head.
func TestLimits(t *testing.T) {
	w, err := OpenWriter(t.Context(), WriterOptions{Bucket: newBucket(t), Limits: metadata.Limits{Families: 1, TenantBytes: 1 << 20, Bytes: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.kill()
	if err := w.PutMetadata("t", "a", model.Metadata{Help: strings.Repeat("x", metadata.MaxTextBytes)}); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a long text: %v", err)
	}
	if err := w.PutMetadata("t", "a", model.Metadata{}); err != nil {
		t.Error(err)
	}
	var full *model.LimitError
	if err := w.PutMetadata("t", "b", model.Metadata{}); !errors.As(err, &full) || full.Limit != "limits.metadata-families" {
		t.Errorf("another family: %v", err)
	}
}

// panicking is a bucket that panics once over a listing, and once over an object that is written, after it
// was.
type panicking struct {
	bucket.Bucket
	list, put atomic.Bool
}

func (b *panicking) List(ctx context.Context, prefix string, fn func(string, int64) error) error {
	if b.list.Swap(false) {
		panic("a hostile listing")
	}
	return b.Bucket.List(ctx, prefix, fn)
}

func (b *panicking) Put(ctx context.Context, name string, r io.Reader, size int64) error {
	err := b.Bucket.Put(ctx, name, r, size)
	if b.put.Swap(false) {
		panic("a hostile response")
	}
	return err
}

// TestPanics: a panic in the background is counted and logged with its stack. What was to be written then is
// written later, and read.
func TestPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &panicking{Bucket: newBucket(t)}
		var log strings.Builder
		logger := slog.New(slog.NewTextHandler(&log, nil))
		w, err := OpenWriter(t.Context(), WriterOptions{Bucket: b, Limits: limits, Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		defer w.kill()
		r := OpenReader(t.Context(), ReaderOptions{Bucket: b, Limits: limits, Logger: logger})
		defer r.Close()
		b.list.Store(true)
		b.put.Store(true)
		if err := w.PutMetadata("t", "a", model.Metadata{Type: "gauge"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(saveEvery + time.Second)
		if err := w.PutMetadata("t", "a", model.Metadata{Type: "counter"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := content(t, r, "t"); got["a"].Type != "counter" {
			t.Errorf("a reader has %v", got)
		}
		for name, n := range map[string]float64{"listing": testutil.ToFloat64(r.errors), "response": testutil.ToFloat64(w.errors)} {
			if text := "unexpected error: a hostile " + name; n != 1 || strings.Count(log.String(), text) != 1 {
				t.Errorf("%v errors are counted, expected one of a hostile %s:\n%s", n, name, log.String())
			}
		}
		if n := strings.Count(log.String(), "families.(*panicking)"); n != 2 {
			t.Errorf("%d stacks are logged, expected 2", n)
		}
	})
}
