package fault_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/buckettest"
	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
)

func memory(t testing.TB) bucket.Bucket {
	t.Helper()
	b, err := fs.New(vfs.NewMem(), "bucket")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSuite(t *testing.T) {
	buckettest.Run(t, func(t testing.TB) bucket.Bucket { return fault.New(memory(t)) })
}

func TestKinds(t *testing.T) {
	ctx := context.Background()
	b := fault.New(memory(t))
	put := func(name, data string) error { return b.Put(ctx, name, strings.NewReader(data), int64(len(data))) }
	has := func(name string) string {
		data, err := b.Get(ctx, name)
		if err != nil {
			return err.Error()
		}
		return string(data)
	}

	b.Add(fault.Rule{Kind: fault.Fail, Op: fault.Put, Prefix: "x/", Skip: 1, Times: 1})
	for i, fails := range []bool{false, true, false} {
		if err := put("x/"+string(rune('a'+i)), "data"); errors.Is(err, model.ErrTransient) != fails {
			t.Errorf("put %d: %v", i, err)
		}
	}
	if _, err := b.Get(ctx, "x/b"); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("what failed was done: %v", err)
	}

	b.Add(fault.Rule{Kind: fault.LostAck, Times: 1})
	if err := put("lost", "data"); !errors.Is(err, model.ErrTransient) || has("lost") != "data" {
		t.Errorf("lost ack: %v, %s", err, has("lost"))
	}

	b.Add(fault.Rule{Kind: fault.Partial, Op: fault.Put, Times: 1})
	if err := put("lost", "newer"); !errors.Is(err, model.ErrTransient) || has("lost") != "data" {
		t.Errorf("partial put: %v, %s", err, has("lost"))
	}
	b.Add(fault.Rule{Kind: fault.Partial, Op: fault.Get, Times: 1})
	if got := has("lost"); got != "da" {
		t.Errorf("partial get: %s", got)
	}
	b.Add(fault.Rule{Kind: fault.Partial, Op: fault.List})
	n := 0
	if err := b.List(ctx, "", func(string, int64) error { n++; return nil }); !errors.Is(err, model.ErrTransient) || n != 1 {
		t.Errorf("partial list: %d of 3, %v", n, err)
	}

	b.Clear()
	b.Add(fault.Rule{Kind: fault.Slow, Delay: time.Hour})
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := b.Get(short, "lost"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("slow: %v", err)
	}
	if b.Hits() != 6 {
		t.Errorf("%d faults", b.Hits())
	}
}
