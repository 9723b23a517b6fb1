package provider

import (
	"context"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/azure"
	"github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/bucket/gcs"
	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/bucket/prefix"
	"github.com/shaledb/shale/internal/bucket/s3"
)

// Unfinished calls fn for every upload that was neither finished nor aborted.
type Unfinished func(ctx context.Context, fn func(name string, begun time.Time)) error

// Open returns the bucket of a location. disk holds folders. unfinished is nil for stores that have no
// unfinished uploads, or remove them by themselves.
func Open(disk vfs.FS, l location.Location) (b bucket.Bucket, unfinished Unfinished, err error) {
	switch l.Kind {
	case location.S3:
		s, err := s3.New(l)
		if err != nil {
			return nil, nil, err
		}
		b = s
		unfinished = func(ctx context.Context, fn func(string, time.Time)) error {
			return s.Unfinished(ctx, l.Prefix, fn)
		}
	case location.GCS:
		b, err = gcs.New(l)
	case location.Azure:
		b, err = azure.New(l)
	default:
		b, err = fs.New(disk, l.Dir)
	}
	if err != nil {
		return nil, nil, err
	}
	if l.Prefix != "" {
		b = prefix.New(b, l.Prefix)
	}
	return b, unfinished, nil
}
