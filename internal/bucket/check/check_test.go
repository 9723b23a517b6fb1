package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
)

func newBucket(t *testing.T) bucket.Bucket {
	t.Helper()
	b, err := fs.New(vfs.NewMem(), "bucket")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func objects(t *testing.T, b bucket.Bucket) (names []string) {
	t.Helper()
	if err := b.List(t.Context(), "", func(name string, _ int64) error {
		names = append(names, name)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func TestSteps(t *testing.T) {
	for depth, want := range map[Depth]int{Quick: 6, Usual: 9, Thorough: 10} {
		b, steps := newBucket(t), 0
		if err := Run(t.Context(), b, depth, func(s Step) {
			if steps++; s.Err != nil {
				t.Errorf("%+v", s)
			}
		}); err != nil {
			t.Error(err)
		}
		if steps != want {
			t.Errorf("depth %d: %d steps, not %d", depth, steps, want)
		}
		if left := objects(t, b); len(left) != 0 {
			t.Errorf("%v are left", left)
		}
	}
}

// TestFailures lets each operation fail: the check says so, and removes what it can.
func TestFailures(t *testing.T) {
	for op, step := range map[fault.Op]string{
		fault.Put: "put", fault.Get: "get", fault.GetRange: "range", fault.List: "list", fault.PutIfAbsent: "create if absent", fault.Delete: "delete",
	} {
		b := newBucket(t)
		f := fault.New(b, fault.Rule{Op: op, Prefix: folder})
		err := Run(t.Context(), f, Usual, nil)
		var failed *Failure
		if !errors.As(err, &failed) || failed.Step != step || !errors.Is(err, model.ErrTransient) {
			t.Errorf("%s: %v", op, err)
		}
		if left := objects(t, b); len(left) != 0 && op != fault.Delete && op != fault.List {
			t.Errorf("%s: %v are left", op, left)
		}
	}
}

// TestLeftovers removes the objects of a check that has died, but not of one that may be running.
func TestLeftovers(t *testing.T) {
	b, now := newBucket(t), time.Now()
	name := func(age time.Duration) string {
		return fmt.Sprintf("%s%020d-abc-small", folder, now.Add(-age).UnixNano())
	}
	for _, name := range []string{name(2 * time.Hour), name(time.Minute), "check/of-somebody", "blocks/a"} {
		if err := b.Put(t.Context(), name, strings.NewReader(""), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := Run(t.Context(), b, Quick, nil); err != nil {
		t.Error(err)
	}
	want := []string{"blocks/a", name(time.Minute), "check/of-somebody"}
	if left := objects(t, b); !slices.Equal(left, want) {
		t.Errorf("%v are left, not %v", left, want)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx, newBucket(t), Usual, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
