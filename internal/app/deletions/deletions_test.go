package deletions

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/topics"
)

// TestLook: a query looks for deletions of other processes once what it knows is older than Settle, by either
// clock: the monotonic one stops while a machine sleeps, and the other one is set.
func TestLook(t *testing.T) {
	b, err := bucketfs.New(vfs.NewMem(), "bucket")
	if err != nil {
		t.Fatal(err)
	}
	open := func() *catalog.Catalog {
		c, err := catalog.Open(t.Context(), b, catalog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	other, made := open(), 0
	d := New(Options{Catalog: open(), Most: 10, Settle: time.Hour})
	hides := func(when string, want int) {
		t.Helper()
		all, err := d.Hiding(t.Context(), "a", model.Metrics)
		if err != nil || len(all) != want {
			t.Fatalf("%s: %d deletions, want %d: %v", when, len(all), want, err)
		}
	}
	hides("none", 0)
	for when, age := range map[string]func(){
		"a while ago":                      func() { d.polled = d.polled.Add(-2 * time.Hour) },
		"the machine has slept":            func() { d.wall = d.wall.Add(-2 * time.Hour) },
		"the wall clock has been set back": func() { d.wall = d.wall.Add(2 * time.Hour) },
	} {
		if _, err := other.Delete(t.Context(), catalog.Deletion{
			Deletion: deletion.Deletion{Request: when, Signal: model.Metrics, Tenant: "a", Range: model.Always(), Matchers: []deletion.Matcher{{}}},
			Fences:   []catalog.Fence{{Node: "p0000", Epoch: 1, Seq: 5}},
		}); err != nil {
			t.Fatal(err)
		}
		hides("just now", made)
		made++
		age()
		hides(when, made)
	}
}

// TestGiveUp: what waits for another deletion, or for another query, ends with its client.
func TestGiveUp(t *testing.T) {
	d := New(Options{Most: 1})
	d.one <- struct{}{}
	d.asks <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := deletion.Deletion{Signal: model.Metrics, Tenant: "a", Range: model.Always(), Matchers: []deletion.Matcher{{}}}
	if _, err := d.Delete(ctx, x); !errors.Is(err, context.Canceled) {
		t.Errorf("a deletion: %v", err)
	}
	if err := d.Cancel(ctx, "a", "r", model.Metrics, false); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancellation: %v", err)
	}
	if _, err := d.Hiding(ctx, "a", model.Metrics); !errors.Is(err, context.Canceled) {
		t.Errorf("a query: %v", err)
	}
}

// TestDeletionNeedsVersion: while programs run that do not know orders to delete, none is written.
func TestDeletionNeedsVersion(t *testing.T) {
	asked := errors.New("which topic takes writes")
	x := deletion.Deletion{Signal: model.Metrics, Tenant: "a", Range: model.Always(), Matchers: []deletion.Matcher{{}}}
	b, err := bucketfs.New(vfs.NewMem(), "bucket")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Open(t.Context(), b, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for v := topics.VersionRows; v <= topics.Newest; v++ {
		d := New(Options{Version: v, Catalog: c, Most: 1, Epoch: func(context.Context) (*topics.Epoch, error) { return nil, asked }})
		_, err := d.Delete(t.Context(), x)
		if older := v < topics.VersionDeletions; older && !errors.Is(err, model.ErrInvalid) || !older && !errors.Is(err, asked) {
			t.Errorf("journal-version %d: %v", v, err)
		}
	}
}
