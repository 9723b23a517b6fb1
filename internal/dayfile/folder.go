package dayfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
)

// Layout is how days are written: 2026-11-26, in UTC.
const Layout = time.DateOnly

const suffix = ".json"

// MaxBytes bounds a document.
const MaxBytes = 64 << 20

// Folder has the documents. Its methods may be called concurrently, except that a day is saved by one
// goroutine at a time.
type Folder struct {
	FS  vfs.FS
	Dir string
	// Days is how many days are kept, besides the one that is saved.
	Days int
}

// Day returns the day of a time in Unix nanoseconds.
func Day(t int64) string { return time.Unix(0, t).UTC().Format(Layout) }

// Parse returns the first instant of a day, or an error of class invalid.
func Parse(day string) (time.Time, error) {
	t, err := time.Parse(Layout, day)
	if err != nil {
		return t, fmt.Errorf("%w: %.40q is not a day such as 2026-11-26", model.ErrInvalid, day)
	}
	return t, nil
}

// Save replaces the document of a day, and drops those that are older than the folder keeps.
func (f *Folder) Save(day string, document any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	if len(text) > MaxBytes {
		return fmt.Errorf("%w: the document of %s has %d bytes and may have %d", model.ErrInvalid, day, len(text), MaxBytes)
	}
	if _, err := f.FS.Stat(f.Dir); err != nil {
		if err := errors.Join(f.FS.MkdirAll(f.Dir, 0o755), f.sync(f.FS.PathDir(f.Dir))); err != nil {
			return err
		}
	}
	file := f.FS.PathJoin(f.Dir, day+suffix)
	w, err := f.FS.Create(file+".new", "dayfile")
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	if err = errors.Join(err, w.Sync(), w.Close()); err != nil {
		return err
	}
	if err := f.FS.Rename(file+".new", file); err != nil {
		return err
	}
	return errors.Join(f.sync(f.Dir), f.drop(day))
}

// sync makes the names in a folder durable.
func (f *Folder) sync(dir string) error {
	d, err := f.FS.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// drop removes documents that are too old. Documents of days to come stay: the clock may have been wrong.
func (f *Folder) drop(today string) error {
	t, err := Parse(today)
	if err != nil {
		return err
	}
	days, err := f.List()
	if err != nil {
		return err
	}
	oldest := t.AddDate(0, 0, -f.Days).Format(Layout)
	for _, day := range days {
		if day < oldest {
			err = errors.Join(err, f.FS.Remove(f.FS.PathJoin(f.Dir, day+suffix)))
		}
	}
	return err
}

// List returns the days that have a document, ascending.
func (f *Folder) List() ([]string, error) {
	names, err := f.FS.List(f.Dir)
	if err != nil {
		return nil, err
	}
	var days []string
	for _, name := range names {
		day, ok := strings.CutSuffix(name, suffix)
		if _, err := Parse(day); ok && err == nil {
			days = append(days, day)
		}
	}
	slices.Sort(days)
	return days, nil
}

// Load reads the document of a day. Without one, the error is [os.ErrNotExist].
func (f *Folder) Load(day string, document any) error {
	if _, err := Parse(day); err != nil {
		return err
	}
	file := f.FS.PathJoin(f.Dir, day+suffix)
	r, err := f.FS.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes))
	if err == nil {
		err = json.Unmarshal(text, document)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
