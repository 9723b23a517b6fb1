package prefix

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// Bucket is the part of another bucket below a prefix.
type Bucket struct {
	next   bucket.Bucket
	prefix string // ends in a slash
}

var _ bucket.Bucket = (*Bucket)(nil)

// New wraps a bucket. prefix is the allowed name of an object.
func New(next bucket.Bucket, prefix string) *Bucket {
	return &Bucket{next: next, prefix: prefix + "/"}
}

// Put creates or replaces an object.
func (b *Bucket) Put(ctx context.Context, name string, r io.Reader, size int64) error {
	if err := bucket.CheckName(name); err != nil {
		return err
	}
	return b.next.Put(ctx, b.prefix+name, r, size)
}

// PutIfAbsent creates an object unless the name is taken.
func (b *Bucket) PutIfAbsent(ctx context.Context, name string, data []byte) (bool, error) {
	if err := bucket.CheckName(name); err != nil {
		return false, err
	}
	return b.next.PutIfAbsent(ctx, b.prefix+name, data)
}

// Get returns a whole object.
func (b *Bucket) Get(ctx context.Context, name string) ([]byte, error) {
	if err := bucket.CheckName(name); err != nil {
		return nil, err
	}
	return b.next.Get(ctx, b.prefix+name)
}

// GetRange returns n bytes of an object from off.
func (b *Bucket) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	if err := bucket.CheckName(name); err != nil {
		return nil, err
	}
	return b.next.GetRange(ctx, b.prefix+name, off, n)
}

// List calls fn for every object whose name begins with prefix.
func (b *Bucket) List(ctx context.Context, prefix string, fn func(name string, size int64) error) error {
	return b.next.List(ctx, b.prefix+prefix, func(name string, size int64) error {
		inner, ok := strings.CutPrefix(name, b.prefix)
		if !ok {
			return fmt.Errorf("bucket: list %s: %w: the store listed %s", b.prefix+prefix, model.ErrInvalid, name)
		}
		return fn(inner, size)
	})
}

// Delete removes an object.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	if err := bucket.CheckName(name); err != nil {
		return err
	}
	return b.next.Delete(ctx, b.prefix+name)
}
