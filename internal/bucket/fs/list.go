package fs

import (
	"context"
	"strings"

	"github.com/shaledb/shale/internal/bucket"
)

// List calls fn for every object whose name begins with prefix.
func (b *Bucket) List(ctx context.Context, prefix string, fn func(name string, size int64) error) error {
	folder := ""
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		folder = prefix[:i]
		if err := bucket.CheckName(folder); err != nil {
			return err
		}
	}
	if info, err := b.fs.Stat(b.path(folder)); err == nil && !info.IsDir() {
		return nil
	}
	return b.walk(ctx, folder, prefix, fn)
}

func (b *Bucket) walk(ctx context.Context, folder, prefix string, fn func(name string, size int64) error) error {
	entries, err := b.fs.List(b.path(folder))
	if missing(err) {
		return nil
	}
	if err != nil {
		return fail("list", folder, err)
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return fail("list", folder, err)
		}
		name := entry
		if folder != "" {
			name = folder + "/" + entry
		}
		// The folder may hold other files: a file whose name is not allowed is not an object.
		if bucket.CheckName(entry) != nil || !strings.HasPrefix(name, prefix) && !strings.HasPrefix(prefix, name+"/") {
			continue
		}
		info, err := b.fs.Stat(b.path(name))
		switch {
		case missing(err): // deleted meanwhile
			continue
		case err != nil:
			return fail("list", name, err)
		case info.IsDir():
			err = b.walk(ctx, name, prefix, fn)
		case strings.HasPrefix(name, prefix):
			err = fn(name, info.Size())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
