package tsdbimport

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
)

// TestObjects downloads a block, and removes it afterwards.
func TestObjects(t *testing.T) {
	b, err := bucketfs.New(vfs.NewMem(), "bucket")
	if err != nil {
		t.Fatal(err)
	}
	chunks := strings.Repeat("0123456789abcde\n", downloadBytes/16) + "more than one piece"
	files := map[string]string{"meta.json": metaOf(first, 0, ""), "index": "", "chunks/000001": chunks}
	for name, text := range files {
		for _, folder := range []string{"a/" + first, "a/" + second} {
			if err := b.Put(t.Context(), folder+"/"+name, strings.NewReader(text), int64(len(text))); err != nil {
				t.Fatal(err)
			}
		}
	}
	source := &Objects{Bucket: b, Dir: t.TempDir()}
	blocks, err := Blocks(t.Context(), source)
	if err != nil || len(blocks) != 2 || blocks[0].Tenant != "a" {
		t.Fatalf("%+v, %v", blocks, err)
	}
	dir, done, err := source.Fetch(t.Context(), &blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, []byte(want)) {
			t.Errorf("%s: %d bytes, %v, expected %d", name, len(got), err, len(want))
		}
	}
	if err := done(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(source.Dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
