package local

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
)

// Small files of the folder are one line with a checksum, followed by the content. They are replaced as a
// whole. Each has a copy, which is used when the file itself is damaged or missing.

// CopySuffix ends the names of the copies.
const CopySuffix = ".copy"

// maxCheckedBytes bounds the size that is read of such a file, so that a wrong file does not fill the memory.
const maxCheckedBytes = 256 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ReadChecked returns the content of a file. If the file cannot be read and its copy can, the content is that
// of the copy, and damaged says what is wrong with the file. The copy may be one replacement older. If there
// is neither a file nor a copy, the error wraps os.ErrNotExist.
func ReadChecked(fs vfs.FS, dir, file string) (body []byte, damaged, err error) {
	name := fs.PathJoin(dir, file)
	body, err = readOne(fs, name)
	if err == nil {
		return body, nil, nil
	}
	body, copyErr := readOne(fs, name+CopySuffix)
	switch {
	case copyErr == nil:
		return body, err, nil
	case errors.Is(copyErr, os.ErrNotExist):
		return nil, nil, err
	case errors.Is(err, os.ErrNotExist):
		return nil, nil, fmt.Errorf("%w: %s is missing: %w", model.ErrCorrupt, name, copyErr)
	}
	return nil, nil, errors.Join(err, copyErr)
}

// ReadCopy returns the content of the copy of a file.
func ReadCopy(fs vfs.FS, dir, file string) ([]byte, error) {
	return readOne(fs, fs.PathJoin(dir, file+CopySuffix))
}

// CheckBoth returns what is wrong with a file and its copy. A copy that differs is one replacement older.
func CheckBoth(fs vfs.FS, dir, file string) error {
	var errs []error
	var bodies [2][]byte
	for i, name := range []string{file, file + CopySuffix} {
		body, err := readOne(fs, fs.PathJoin(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%w: %s is missing", model.ErrCorrupt, fs.PathJoin(dir, name))
		}
		bodies[i], errs = body, append(errs, err)
	}
	err := errors.Join(errs...)
	if err == nil && !bytes.Equal(bodies[0], bodies[1]) {
		err = fmt.Errorf("%w: %s differs from %s", model.ErrCorrupt, fs.PathJoin(dir, file+CopySuffix), fs.PathJoin(dir, file))
	}
	return err
}

func readOne(fs vfs.FS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", model.ErrTransient, name, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCheckedBytes))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", model.ErrTransient, name, err)
	}
	sum, body, ok := bytes.Cut(data, []byte("\n"))
	if want := fmt.Sprintf("crc32c %08x", crc32.Checksum(body, castagnoli)); !ok || string(sum) != want {
		return nil, fmt.Errorf("%w: %s: expected checksum %q, got %.20q", model.ErrCorrupt, name, want, sum)
	}
	return body, nil
}

// ReplaceChecked replaces a file and its copy: it writes and syncs temporary files, renames them and syncs
// the folder.
func ReplaceChecked(fs vfs.FS, dir, file string, body []byte) error {
	data := append(fmt.Appendf(nil, "crc32c %08x\n", crc32.Checksum(body, castagnoli)), body...)
	name := fs.PathJoin(dir, file)
	both := []string{name, name + CopySuffix}
	for _, name := range both {
		// A file may change the bytes that it is given to write.
		if err := writeSynced(fs, name+".tmp", slices.Clone(data)); err != nil {
			return err
		}
	}
	for _, name := range both {
		if err := fs.Rename(name+".tmp", name); err != nil {
			return fmt.Errorf("%w: %s: %w", model.ErrTransient, name, err)
		}
	}
	return SyncDir(fs, dir)
}

func writeSynced(fs vfs.FS, name string, data []byte) error {
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(data)
		if err == nil {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", model.ErrTransient, name, err)
	}
	return nil
}

func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err == nil {
		err = errors.Join(d.Sync(), d.Close())
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", model.ErrTransient, dir, err)
	}
	return nil
}
