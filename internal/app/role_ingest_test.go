package app

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestClean: folders of partitions that an earlier process has left go, and others stay.
func TestClean(t *testing.T) {
	fs := vfs.NewMem()
	r := &ingestRole{n: &node{fs: fs, dataDir: "/data"}}
	for range 2 { // the first time there is no folder
		if err := r.clean(); err != nil {
			t.Fatal(err)
		}
		if left, err := fs.List("/data/ingest"); err != nil || len(left) > 0 {
			t.Errorf("left are %v, %v", left, err)
		}
		for _, folder := range []string{"ingest/1-p0003", "ingest/2-p0000", "compact"} {
			if err := fs.MkdirAll("/data/"+folder, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := fs.Stat("/data/compact"); err != nil {
		t.Error(err)
	}
}
