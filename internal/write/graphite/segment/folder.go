package segment

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
)

// Folder is a folder of files with records of one format.
type Folder struct {
	FS     vfs.FS
	Dir    string
	Format string
}

func fileName(number uint64) string { return fmt.Sprintf("%06d.log", number) }

func parseFileName(s string) (uint64, bool) {
	digits, ok := strings.CutSuffix(s, ".log")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil && fileName(n) == s
}

// Path returns the path of a file.
func (f Folder) Path(number uint64) string { return f.FS.PathJoin(f.Dir, fileName(number)) }

// Open makes the folder, unless it exists, and returns the numbers of its files, in order. An unfinished
// file is left: the next of its number replaces it.
func (f Folder) Open() (numbers []uint64, err error) {
	if err := MakeDir(f.FS, f.Dir); err != nil {
		return nil, err
	}
	files, err := f.FS.List(f.Dir)
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if n, ok := parseFileName(name); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// Size returns the size of a file in bytes.
func (f Folder) Size(number uint64) (int64, error) {
	info, err := f.FS.Stat(f.Path(number))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Remove deletes a file. After a power cut it may be there again.
func (f Folder) Remove(number uint64) error { return f.FS.Remove(f.Path(number)) }

// Create begins a file with records, which are durable when it returns.
func (f Folder) Create(number uint64, records ...[]byte) (w *Writer, err error) {
	path := f.Path(number)
	file, err := f.FS.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	w = &Writer{file: file, records: record.NewWriter(file)}
	for _, r := range append([][]byte{[]byte(f.Format)}, records...) {
		if err := w.Append(r); err != nil {
			return nil, err
		}
	}
	if err := file.Sync(); err != nil {
		return nil, err
	}
	if err := f.FS.Rename(path+".new", path); err != nil {
		return nil, err
	}
	return w, syncDir(f.FS, f.Dir)
}

// MakeDir makes a folder, unless it exists, and makes that durable.
func MakeDir(fs vfs.FS, dir string) error {
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return syncDir(fs, fs.PathDir(dir))
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Read calls fn with each record of a file but the first. If the end of the file is cut off or damaged, cut
// says why, and fn has got what comes before. An error of class corrupt says that nothing can be read, or is
// that of fn. The records belong to fn.
func (f Folder) Read(number uint64, fn func(record []byte) error) (cut, err error) {
	path := f.Path(number)
	file, err := f.FS.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r := record.NewReader(file, 0)
	for n := 0; ; n++ {
		text, err := next(r)
		switch {
		case errors.Is(err, io.EOF) && n > 0:
			return nil, nil
		case err != nil && n == 0:
			return nil, fmt.Errorf("%w: %s cannot be read: %w", model.ErrCorrupt, path, err)
		case err != nil:
			return err, nil
		case n == 0 && string(text) != f.Format:
			return nil, fmt.Errorf("%w: %s: expected the format %q, found %.40q", model.ErrCorrupt, path, f.Format, text)
		case n == 0:
			continue
		}
		if err := fn(text); err != nil {
			return nil, fmt.Errorf("%w: %s: record %d: %w", model.ErrCorrupt, path, n, err)
		}
	}
}

func next(r *record.Reader) ([]byte, error) {
	rr, err := r.Next()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(rr)
}
