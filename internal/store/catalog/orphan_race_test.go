package catalog

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// TestOrphanIsUploadedAgain: the ship of a block is tried again while the collector deletes what the first
// attempt has left. The committed block keeps its object.
func TestOrphanIsUploadedAgain(t *testing.T) {
	for _, another := range []bool{false, true} {
		now := int64(1e18)
		b := &meanwhile{Bucket: memory(t)}
		c, other := openWith(t, b, nil, &now), openWith(t, b.Bucket, nil, &now)
		abandon(t, b, "x")
		for range 3 {
			now += int64(10 * time.Hour)
			collect(t, c)
		}
		now += int64(10 * time.Hour)
		shipped := make(chan struct{})
		if another {
			done, err := other.Uploading(ctx, "x")
			if err != nil {
				t.Fatal(err)
			}
			defer done()
			put(t, b.Bucket, ObjectName("x"), "block x")
			collect(t, c)
			if err := commitBlock(other, block("x", 5, 6)); err != nil {
				t.Fatal(err)
			}
			close(shipped)
		} else {
			b.beforeDelete = func(name string) {
				if name != ObjectName("x") {
					return
				}
				b.beforeDelete = nil
				go func() {
					defer close(shipped)
					shipSized(t, b.Bucket, c, "x")
				}()
				time.Sleep(50 * time.Millisecond) // the upload must wait
			}
			collect(t, c)
		}
		<-shipped
		refresh(t, c)
		if got := objectsBelow(t, b.Bucket, BlockPrefix); !slices.Equal(ids(c.Live()), []string{"x"}) || len(got) != 1 {
			t.Errorf("another process %v: live are %v, with the objects %v", another, ids(c.Live()), got)
		}
	}
}

// interrupted is a bucket in which something happens before one request.
type interrupted struct {
	bucket.Bucket
	left int // requests until then
	then func()
}

func (i *interrupted) request() {
	if i.left--; i.left == 0 {
		i.then()
	}
}

func (i *interrupted) Put(ctx context.Context, name string, r io.Reader, size int64) error {
	i.request()
	return i.Bucket.Put(ctx, name, r, size)
}

func (i *interrupted) PutIfAbsent(ctx context.Context, name string, data []byte) (bool, error) {
	i.request()
	return i.Bucket.PutIfAbsent(ctx, name, data)
}

func (i *interrupted) Get(ctx context.Context, name string) ([]byte, error) {
	i.request()
	return i.Bucket.Get(ctx, name)
}

func (i *interrupted) List(ctx context.Context, prefix string, fn func(string, int64) error) error {
	i.request()
	return i.Bucket.List(ctx, prefix, fn)
}

func (i *interrupted) Delete(ctx context.Context, name string) error {
	i.request()
	return i.Bucket.Delete(ctx, name)
}

// TestCommitDuringCollection: between any two requests of a collector that deletes an old upload, another
// process uploads and commits the same block, by a ship or a merge. If it succeeds, the block keeps its
// object. If it has to give way, it succeeds later.
func TestCommitDuringCollection(t *testing.T) {
	for _, merges := range []bool{false, true} {
		gaveWay, requests := 0, 0
		for at := 1; ; at++ {
			now := int64(1e18)
			b := memory(t)
			i := &interrupted{Bucket: b}
			other := openWith(t, b, nil, &now)
			ship(t, other, block("a", 1, 2))
			abandon(t, b, "x")
			c := openWith(t, i, nil, &now)
			for range 3 {
				now += int64(10 * time.Hour)
				collect(t, c)
			}
			now += int64(10 * time.Hour)
			attempt := func() error {
				if !merges {
					_, err := other.Ship(ctx, *shipOf(other, block("x", 5, 6)), func(context.Context, string) error { put(t, b, ObjectName("x"), "block x"); return nil })
					return err
				}
				done, err := other.Uploading(ctx, "x")
				if err != nil {
					return err
				}
				defer done()
				put(t, b, ObjectName("x"), "block x")
				return other.Replace(ctx, []string{"a"}, []Block{merged("x", 1, 6)})
			}
			i.left, i.then = at, func() {
				if err := attempt(); errors.Is(err, model.ErrTransient) {
					gaveWay++
				} else if err != nil {
					t.Fatal(err)
				}
			}
			collect(t, c)
			if i.left > 0 {
				requests = at
				break
			}
			if refresh(t, other); !other.Has("x") {
				clear(other.claims)
				if err := attempt(); err != nil {
					t.Fatal(err)
				}
			}
			if got := objectsBelow(t, b, BlockPrefix); !slices.Contains(got, "blocks/x") {
				t.Errorf("merges %v, before request %d: the block is committed, and its object is deleted", merges, at)
			}
			refresh(t, c)
			if len(c.strays) > 0 || !c.Has("x") {
				t.Errorf("merges %v, before request %d: live are %v, strays %v", merges, at, ids(c.Live()), c.strays)
			}
		}
		if gaveWay == 0 || gaveWay > requests/2 {
			t.Errorf("merges %v: the other process had to give way before %d of %d requests", merges, gaveWay, requests)
		}
	}
}

// TestClaimOfDeadCollector: a claim whose collector has died delays an upload, but does not stop it.
func TestClaimOfDeadCollector(t *testing.T) {
	now := int64(1e18)
	b := memory(t)
	c := openWith(t, b, nil, &now)
	abandon(t, b, "x")
	put(t, b, claimName("x"), "x")
	upload := func(context.Context, string) error { put(t, b, ObjectName("x"), "block x"); return nil }
	for range 2 {
		if _, err := c.Ship(ctx, *shipOf(c, block("x", 5, 6)), upload); !errors.Is(err, model.ErrTransient) || !strings.Contains(err.Error(), claimMark) {
			t.Fatalf("at once: %v", err)
		}
	}
	if len(c.claims["x"]) != 1 || len(objectsBelow(t, b, UploadPrefix)) != 2 {
		t.Fatalf("claims %v, markers %v", c.claims, objectsBelow(t, b, UploadPrefix))
	}
	for name := range c.claims["x"] {
		c.claims["x"][name] = time.Now().Add(-claimedFor)
	}
	if _, err := c.Ship(ctx, *shipOf(c, block("x", 5, 6)), upload); err != nil {
		t.Fatalf("later: %v", err)
	}
	if err := c.giveWay(ctx, []string{"x"}); err != nil || len(c.claims) > 0 {
		t.Errorf("claims %v: %v", c.claims, err)
	}
}

// TestStaleMarkers: a marker that a crash or a failed attempt has left next to a committed block goes, so
// that a loss of the record is noticed later.
func TestStaleMarkers(t *testing.T) {
	now := int64(1e18)
	b := memory(t)
	c := openWith(t, b, nil, &now)
	upload := func(context.Context, string) error { put(t, b, ObjectName("x"), "block x"); return nil }
	away := func(context.Context, string) error { return model.ErrTransient }
	for range 2 {
		if _, err := c.Ship(ctx, *shipOf(c, block("x", 5, 6)), away); err == nil {
			t.Fatal("no error")
		}
	}
	if _, err := c.Ship(ctx, *shipOf(c, block("x", 5, 6)), upload); err != nil {
		t.Fatal(err)
	}
	if got := objectsBelow(t, b, UploadPrefix); len(got) > 0 || len(c.markers) > 0 {
		t.Errorf("markers of failed attempts stay: %v, %v", got, c.markers)
	}
	put(t, b, markerName("x"), "x") // a crash between the commit and the deletion of the marker
	for day := range 3 {
		// The server is restarted each day, and collects once.
		now += int64(25 * time.Hour)
		c = openWith(t, b, nil, &now)
		collect(t, c)
		if got := objectsBelow(t, b, UploadPrefix); len(got) > 0 {
			t.Errorf("day %d: markers %v", day, got)
		}
	}
	remove(t, b, shipA, "copies/"+shipA)
	if c = openWith(t, b, nil, &now); len(c.strays) > 0 {
		t.Fatal("strays are looked for at the first collection")
	}
	for range 4 {
		now += int64(12 * time.Hour)
		collect(t, c)
	}
	if len(c.strays) != 1 || len(objectsBelow(t, b, BlockPrefix)) != 1 {
		t.Errorf("strays %v, blocks %v", c.strays, objectsBelow(t, b, BlockPrefix))
	}
}

// TestOrphansOverRestarts: what a failed upload has left is collected after a day, also by a server that is
// restarted every few hours.
func TestOrphansOverRestarts(t *testing.T) {
	now := int64(1e18)
	b, mem := memory(t), memory(t)
	abandon(t, b, "x")
	for range 5 {
		c := openWith(t, b, mem, &now)
		for range orphanSightings {
			collect(t, c)
			now += int64(2 * time.Hour)
		}
		if hours := (now - 1e18) / int64(time.Hour); len(objectsBelow(t, b, BlockPrefix)) == 0 && hours < 24 {
			t.Fatalf("collected after %d hours", hours)
		}
	}
	if got := objectsBelow(t, b, ""); len(got) > 0 && !slices.Equal(got, []string{"copies/seed"}) {
		t.Errorf("after %d hours there are %v", (now-1e18)/int64(time.Hour), got)
	}
	if since := openWith(t, b, mem, &now).recallOrphans(ctx); len(since) > 0 {
		t.Errorf("remembered: %v", since)
	}
}
