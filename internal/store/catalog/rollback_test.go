package catalog

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/bucket"
)

// everyDay are the options of a server, with which the tests collect.
var everyDay = CollectOptions{Grace: 3 * time.Minute, UploadGrace: 24 * time.Hour, DeletionGrace: 24 * time.Hour}

func collect(t fataler, c *Catalog) {
	t.Helper()
	if _, err := c.Collect(ctx, everyDay); err != nil {
		t.Fatal(err)
	}
}

// contents returns all objects of a bucket.
func contents(t fataler, b bucket.Bucket) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range objectsBelow(t, b, "") {
		data, err := b.Get(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(data)
	}
	return all
}

// putBack replaces the content of a bucket.
func putBack(t fataler, b bucket.Bucket, all map[string]string) {
	t.Helper()
	remove(t, b, objectsBelow(t, b, "")...)
	for name, data := range all {
		put(t, b, name, data)
	}
}

// TestOlderBucketIsKept: somebody puts an older bucket in place, in which a merge has not happened yet. The
// merge stays known as lost, and must not be a reason to delete the blocks that it replaced.
func TestOlderBucketIsKept(t *testing.T) {
	for _, restart := range []bool{true, false} {
		for _, collected := range []bool{true, false} {
			now := int64(1e18)
			b, mem := memory(t), memory(t)
			c := openWith(t, b, mem, &now)
			if _, err := EnsureSeed(ctx, b); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"a", "b"} {
				x := block(id, 1, 2)
				x.Bytes = int64(len("block " + id))
				ship(t, c, x)
			}
			older := contents(t, b)
			now += int64(time.Hour)
			merge(t, c, merged("m", 1, 4), "a", "b")
			now += int64(time.Hour)
			if collected {
				collect(t, c)
			}
			putBack(t, b, older)
			if restart {
				c = openWith(t, b, mem, &now)
			} else {
				refresh(t, c)
			}
			for range 3 {
				now += int64(10 * time.Hour)
				collect(t, c)
			}
			if got := objectsBelow(t, b, BlockPrefix); !slices.Equal(got, []string{"blocks/a", "blocks/b"}) {
				t.Fatalf("restart %v, collected %v: blocks %v are left", restart, collected, got)
			}
			s, err := ReadSurvey(ctx, b, mem)
			if err != nil {
				t.Fatal(err)
			}
			steps, _ := (&Repairer{Bucket: b, Now: now}).Propose(ctx, s)
			for _, p := range steps {
				if p.Loss != "" || !strings.Contains(p.Action, "do without it") {
					t.Errorf("%s: %s: %s; loss %q", p.Object, p.Why, p.Action, p.Loss)
				}
				if err := p.Do(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if refresh(t, c); !slices.Equal(ids(c.Live()), []string{"a", "b"}) || len(c.lost) > 0 {
				t.Errorf("after the repair, live are %v, lost %v", ids(c.Live()), lostOf(c))
			}
		}
	}
}
