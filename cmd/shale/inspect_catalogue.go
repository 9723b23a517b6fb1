package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

type inspectCatalogueCmd struct {
	Dir   string `arg:"" type:"existingdir" help:"The bucket's folder."`
	Check bool   `help:"Read every block that lives, and compare it with its commit record."`
}

// Run lists the blocks that live.
func (i *inspectCatalogueCmd) Run(ctx context.Context, p *process) error {
	c, err := catalog.Open(ctx, folderBucket(i.Dir))
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "BLOCK\tSIZE\tSERIES\tSAMPLES\tTIMES\tBATCHES\tTENANTS")
	damaged := 0
	for _, b := range c.Live() {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%d to %d\t%s", b.ID, config.Size(b.Bytes), b.Series, b.Samples, times(b.Range), b.SeqLo, b.SeqHi, tenants(&b))
		if i.Check {
			if err := i.check(ctx, &b); err != nil {
				damaged++
				fmt.Fprintf(w, "\t%v", err)
			} else {
				fmt.Fprint(w, "\tin order")
			}
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if damaged > 0 {
		return fmt.Errorf("%d blocks are damaged or missing", damaged)
	}
	return nil
}

// check reads a block and compares it with what the catalogue says of it.
func (i *inspectCatalogueCmd) check(ctx context.Context, b *catalog.Block) error {
	name := filepath.Join(i.Dir, filepath.FromSlash(catalog.ObjectName(b.ID)))
	return withPart(ctx, name, func(r *part.Reader) error {
		m := r.Meta()
		if r.Size() != b.Bytes || m.Series != b.Series || m.Samples != b.Samples || m.Range != b.Range || m.SeqLo != b.SeqLo || m.SeqHi != b.SeqHi {
			return fmt.Errorf("%w: the block is not what its commit record says", model.ErrCorrupt)
		}
		return part.Check(ctx, r)
	})
}

func tenants(b *catalog.Block) string {
	if b.Tenants == nil {
		return fmt.Sprintf("%d of them", b.TenantCount)
	}
	return strings.Join(b.Tenants, ", ")
}

// folderBucket reads the bucket in a folder and changes nothing, not even what a server has left half-written there,
// which may still run.
type folderBucket string

var errReadOnly = fmt.Errorf("%w: the bucket is only looked at", model.ErrInvalid)

func (f folderBucket) path(name string) string {
	return filepath.Join(string(f), filepath.FromSlash(name))
}

// Get reads a whole object.
func (f folderBucket) Get(_ context.Context, name string) ([]byte, error) {
	data, err := os.ReadFile(f.path(name))
	return data, asBucketError(err)
}

// GetRange reads a part of an object.
func (f folderBucket) GetRange(_ context.Context, name string, off, n int64) ([]byte, error) {
	file, err := os.Open(f.path(name))
	if err != nil {
		return nil, asBucketError(err)
	}
	defer file.Close()
	data := make([]byte, n)
	if _, err := file.ReadAt(data, off); err != nil {
		return nil, asBucketError(err)
	}
	return data, nil
}

// List walks the files, but for hidden ones, which are no objects.
func (f folderBucket) List(_ context.Context, prefix string, fn func(name string, size int64) error) error {
	return filepath.WalkDir(string(f), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return asBucketError(err)
		}
		rel, err := filepath.Rel(string(f), path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if d.IsDir() && name != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasPrefix(name, prefix) || strings.HasPrefix(d.Name(), ".") {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil // gone meanwhile
		}
		return fn(name, info.Size())
	})
}

// Put is refused, as are the others that change the bucket.
func (folderBucket) Put(context.Context, string, io.Reader, int64) error { return errReadOnly }

// PutIfAbsent is refused.
func (folderBucket) PutIfAbsent(context.Context, string, []byte) (bool, error) {
	return false, errReadOnly
}

// Delete is refused.
func (folderBucket) Delete(context.Context, string) error { return errReadOnly }

func asBucketError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", bucket.ErrNotFound, err)
	}
	return fmt.Errorf("%w: %w", model.ErrTransient, err)
}
