package local

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
)

// Small files of the folder are one line with a checksum, followed by the content. They are replaced as a
// whole.

// maxCheckedBytes bounds the size that is read of such a file, so that a wrong file does not fill the memory.
const maxCheckedBytes = 256 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ReadChecked returns the content of a file after checking it. If there is no file, the error wraps
// os.ErrNotExist.
func ReadChecked(fs vfs.FS, name string) ([]byte, error) {
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

// ReplaceChecked replaces a file: it writes and syncs a temporary file, renames it and syncs the folder.
func ReplaceChecked(fs vfs.FS, dir, file string, body []byte) error {
	data := append(fmt.Appendf(nil, "crc32c %08x\n", crc32.Checksum(body, castagnoli)), body...)
	name := fs.PathJoin(dir, file)
	if err := writeSynced(fs, name+".tmp", data); err != nil {
		return err
	}
	if err := fs.Rename(name+".tmp", name); err != nil {
		return fmt.Errorf("%w: %s: %w", model.ErrTransient, name, err)
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
