package app

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestLeave: folders of partitions that a process does not have any more, or had in an epoch before, go.
func TestLeave(t *testing.T) {
	fs := vfs.NewMem()
	r := &ingestRole{n: &node{fs: fs, dataDir: "/data", log: slog.New(slog.DiscardHandler)}}
	for range 2 { // the first time there is no folder
		if err := r.leave(2, []int32{0, 3}); err != nil {
			t.Fatal(err)
		}
		for _, folder := range []string{"1-p0003", "2-p0000", "2-p0002", "2-p0003"} {
			if err := fs.MkdirAll("/data/ingest/"+folder, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.leave(2, []int32{0, 3}); err != nil {
		t.Fatal(err)
	}
	left, err := fs.List("/data/ingest")
	slices.Sort(left)
	if err != nil || !slices.Equal(left, []string{"2-p0000", "2-p0003"}) {
		t.Errorf("left are %v, %v", left, err)
	}
}
