package prefix

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/buckettest"
	"github.com/shaledb/shale/internal/bucket/fs"
)

func TestContract(t *testing.T) {
	buckettest.Run(t, func(t testing.TB) bucket.Bucket {
		b, err := fs.New(vfs.NewMem(), "bucket")
		if err != nil {
			t.Fatal(err)
		}
		return New(b, "some/where")
	})
}
