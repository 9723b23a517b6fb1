package objectstores

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/bucket/provider"
)

// Places are empty buckets for tests that run on any store.
type Places struct {
	store *Store // nil: folders
	made  atomic.Int64
}

// NewPlaces starts the store of a name. An empty name stands for folders on the disks of the test.
func NewPlaces(t testing.TB, name string) *Places {
	t.Helper()
	p := &Places{}
	if name != "" {
		p.store = Start(t, name)
	}
	return p
}

// New returns an empty bucket.
func (p *Places) New() Place {
	if p.store == nil {
		return Place{location.Location{Dir: "/bucket"}}
	}
	return Place{p.store.At(fmt.Sprintf("place-%d", p.made.Add(1)))}
}

// Place is one bucket. A disk that loses its power keeps what a folder has synced; a store keeps everything.
type Place struct{ location location.Location }

// Open opens the bucket, in a folder of the disk if no store was named.
func (p Place) Open(disk vfs.FS) (bucket.Bucket, error) {
	b, _, err := provider.Open(disk, p.location)
	return b, err
}
