package app

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLiesIn: symbolic links do not hide that a bucket takes space of the data folder.
func TestLiesIn(t *testing.T) {
	root := t.TempDir()
	data, disk := filepath.Join(root, "data"), filepath.Join(root, "disk")
	for _, dir := range []string{data, disk} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"to-data": data, "data/to-disk": disk} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]bool{
		"data": true, "data/bucket": true, "data/..bucket": true, "disk": false, "database": false, "disk/bucket": false, "": false,
		"to-data": true, "to-data/bucket": true, "to-data/new/bucket": true, "to-data/../bucket": false,
		"data/to-disk": true, "data/to-disk/bucket": true,
	} {
		if got := liesIn(filepath.Join(root, dir), data); got != want {
			t.Errorf("%q: %v", dir, got)
		}
	}
	if !liesIn(filepath.Join(data, "bucket"), filepath.Join(root, "to-data")) {
		t.Error("the data folder is named by a link")
	}
}
