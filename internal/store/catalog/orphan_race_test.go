package catalog

import (
	"slices"
	"testing"
	"time"
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
			if err := other.Commit(ctx, block("x", 5, 6)); err != nil {
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
		if got := objectsBelow(t, b.Bucket, blockPrefix); !slices.Equal(ids(c.Live()), []string{"x"}) || len(got) != 1 {
			t.Errorf("another process %v: live are %v, with the objects %v", another, ids(c.Live()), got)
		}
	}
}
