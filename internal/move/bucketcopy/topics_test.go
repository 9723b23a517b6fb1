package bucketcopy

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/store/catalog"
)

// A copy has the epochs of topics: a new one must not get the number of one that ships have covered.
func TestTopicsAreCopied(t *testing.T) {
	ctx := t.Context()
	from, err := bucketfs.New(vfs.NewMem(), "from")
	if err != nil {
		t.Fatal(err)
	}
	to, err := bucketfs.New(vfs.NewMem(), "to")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := catalog.EnsureSeed(ctx, from); err != nil {
		t.Fatal(err)
	}
	topic := []byte("the bytes of an epoch\n")
	if _, err := from.PutIfAbsent(ctx, "kafka-0001.json", topic); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second one brings the copy up to date
		if _, err := (&Copy{From: from, To: to, Concurrency: 1}).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if got, err := to.Get(ctx, "kafka-0001.json"); err != nil || !bytes.Equal(got, topic) {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}
