package tsdbimport

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// Source is where blocks come from.
type Source interface {
	// List calls fn for the files of blocks, with their paths below the source.
	List(ctx context.Context, fn func(name string) error) error
	// Get returns a small file.
	Get(ctx context.Context, name string) ([]byte, error)
	// Fetch returns a folder on this machine with the files of a block, and a function that ends its use.
	Fetch(ctx context.Context, b *Block) (dir string, done func() error, err error)
}

// Blocks lists the blocks of a source, in the order in which they are sent. Blocks that are not imported say
// why. A source without any block is an error of class invalid.
func Blocks(ctx context.Context, s Source) ([]Block, error) {
	folders := map[string]*Block{} // by folder
	marked := map[string]bool{}
	single := false
	err := s.List(ctx, func(name string) error {
		if name == metaFile {
			single = true
		}
		folder, tenant, file, ok := splitName(name)
		if !ok {
			return nil
		}
		if folders[folder] == nil {
			folders[folder] = &Block{ID: filepath.Base(folder), Folder: folder, Tenant: tenant, LeftOut: "it has no " + metaFile + ": its upload was not finished"}
		}
		switch file {
		case metaFile:
			folders[folder].LeftOut = ""
		case deletionMarkFile:
			marked[folder] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if single {
		folders = map[string]*Block{"": {}}
	}
	if len(folders) == 0 {
		return nil, fmt.Errorf("%w: no block is there: expected folders such as 01JD2M6X0E2FZ3V1W8Q4K7N5RB with a file %s, or those of Mimir's tenants", model.ErrInvalid, metaFile)
	}
	var blocks []Block
	for folder, b := range folders {
		if b.LeftOut == "" {
			text, err := s.Get(ctx, join(folder, metaFile))
			if err != nil {
				return nil, err
			}
			found, err := parseMeta(text)
			if err != nil {
				return nil, fmt.Errorf("block %s: %w", b.ID, err)
			}
			found.Folder, found.Tenant = folder, b.Tenant
			if marked[folder] {
				found.LeftOut = "it is marked for deletion"
			}
			*b = found
		}
		blocks = append(blocks, *b)
	}
	leaveOutParents(blocks)
	sortBlocks(blocks)
	return blocks, nil
}

// leaveOutParents leaves out blocks from which another one was made: Prometheus deletes them a little later.
func leaveOutParents(blocks []Block) {
	child := map[[2]string]string{} // tenant and parent
	for i := range blocks {
		if blocks[i].LeftOut == "" {
			for _, p := range blocks[i].parents {
				child[[2]string{blocks[i].Tenant, p}] = blocks[i].ID
			}
		}
	}
	for i := range blocks {
		b := &blocks[i]
		if id := child[[2]string{b.Tenant, b.ID}]; id != "" && id != b.ID && b.LeftOut == "" {
			b.LeftOut = "it was compacted into " + id
		}
	}
}

func join(folder, file string) string {
	if folder == "" {
		return file
	}
	return folder + "/" + file
}

// Folder is a source on this machine.
type Folder string

// List lists the files of blocks. It does not enter folders that cannot hold a block.
func (f Folder) List(ctx context.Context, fn func(name string) error) error {
	root, err := filepath.EvalSymlinks(string(f))
	if err != nil {
		return fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	err = filepath.WalkDir(root, func(path string, d iofs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || name == "." {
			return err
		}
		name = filepath.ToSlash(name)
		if !d.IsDir() {
			return fn(name)
		}
		depth := strings.Count(name, "/")
		if depth >= 2 || depth == 1 && !isULID(d.Name()) || name == "wal" || name == "chunks_head" {
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	return nil
}

// Get returns a small file.
func (f Folder) Get(_ context.Context, name string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(string(f), filepath.FromSlash(name)))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	return text, nil
}

// Fetch returns the folder of the block itself.
func (f Folder) Fetch(_ context.Context, b *Block) (string, func() error, error) {
	return filepath.Join(string(f), filepath.FromSlash(b.Folder)), func() error { return nil }, nil
}

// HasJournal reports whether the folder is that of a Prometheus with samples that are not in a block yet.
func (f Folder) HasJournal() bool {
	entries, err := os.ReadDir(filepath.Join(string(f), "wal"))
	return err == nil && len(entries) > 0
}

// Objects is a source in an object store. A block is downloaded before it is read, and then deleted.
type Objects struct {
	Bucket bucket.Bucket
	// Dir holds the block that is being read.
	Dir string
}

// List lists the objects.
func (o *Objects) List(ctx context.Context, fn func(name string) error) error {
	return o.Bucket.List(ctx, "", func(name string, _ int64) error { return fn(name) })
}

// Get returns a small object.
func (o *Objects) Get(ctx context.Context, name string) ([]byte, error) {
	return o.Bucket.Get(ctx, name)
}

// downloadBytes is how much of an object is read with one request.
const downloadBytes = 8 << 20

// Fetch downloads a block.
func (o *Objects) Fetch(ctx context.Context, b *Block) (dir string, done func() error, err error) {
	dir, err = os.MkdirTemp(o.Dir, "shale-import-")
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", model.ErrTransient, err)
	}
	done = func() error { return os.RemoveAll(dir) }
	err = o.Bucket.List(ctx, join(b.Folder, ""), func(name string, size int64) error {
		return o.download(ctx, name, filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(name, join(b.Folder, "")))), size)
	})
	if err != nil {
		return "", nil, errors.Join(err, done())
	}
	return dir, done, nil
}

func (o *Objects) download(ctx context.Context, name, path string, size int64) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("%w: %w", model.ErrTransient, err)
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("%w: %w", model.ErrTransient, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for off := int64(0); off < size; off += downloadBytes {
		piece, err := o.Bucket.GetRange(ctx, name, off, min(downloadBytes, size-off))
		if err != nil {
			return err
		}
		if _, err := f.Write(piece); err != nil {
			return fmt.Errorf("%w: %w; --work-dir chooses the folder for downloads", model.ErrTransient, err)
		}
	}
	return nil
}
