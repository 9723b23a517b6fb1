package pace

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/shaledb/shale/internal/bucket"
)

// Bucket tells a limit how the requests to another bucket end.
type Bucket struct {
	next  bucket.Bucket
	limit *Limit
}

var _ bucket.Bucket = (*Bucket)(nil)

// Wrap wraps a bucket.
func Wrap(next bucket.Bucket, l *Limit) *Bucket { return &Bucket{next, l} }

// ended counts the end of a request: see [Limit.accepted].
func (b *Bucket) ended(write bool, bytes int64, began time.Time, err error) {
	var throttled *bucket.ThrottledError
	switch {
	case errors.As(err, &throttled):
		b.limit.refused(write, throttled.After)
	case err == nil:
		b.limit.accepted(write, bytes, time.Since(began))
	}
}

// Put creates or replaces an object.
func (b *Bucket) Put(ctx context.Context, name string, r io.Reader, size int64) error {
	err := b.next.Put(ctx, name, r, size)
	b.ended(true, -1, time.Time{}, err)
	return err
}

// PutIfAbsent creates an object unless the name is taken.
func (b *Bucket) PutIfAbsent(ctx context.Context, name string, data []byte) (bool, error) {
	created, err := b.next.PutIfAbsent(ctx, name, data)
	b.ended(true, -1, time.Time{}, err)
	return created, err
}

// Get returns a whole object.
func (b *Bucket) Get(ctx context.Context, name string) ([]byte, error) {
	began := time.Now()
	data, err := b.next.Get(ctx, name)
	b.ended(false, int64(len(data)), began, err)
	return data, err
}

// GetRange returns n bytes of an object from off.
func (b *Bucket) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	began := time.Now()
	data, err := b.next.GetRange(ctx, name, off, n)
	b.ended(false, int64(len(data)), began, err)
	return data, err
}

// List calls fn for every object whose name begins with prefix.
func (b *Bucket) List(ctx context.Context, prefix string, fn func(name string, size int64) error) error {
	err := b.next.List(ctx, prefix, fn)
	b.ended(false, -1, time.Time{}, err)
	return err
}

// Delete removes an object.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	err := b.next.Delete(ctx, name)
	b.ended(true, -1, time.Time{}, err)
	return err
}
