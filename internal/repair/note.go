package repair

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
)

// Folder is the folder of files that were set aside. It lies in the data folder.
const Folder = "set-aside"

const noteSuffix = ".note.json"

// Note says why a file was set aside.
type Note struct {
	// File is the name in the folder, or empty if there was no file: it was missing.
	File string `json:"file,omitempty"`
	// From is the path that the file had in the data folder.
	From string    `json:"from"`
	Why  string    `json:"why"`
	At   time.Time `json:"at"`
	// Lost says what queries lack; nil: nothing.
	Lost *Lost `json:"lost,omitempty"`
}

// What says what kind of data queries lack.
type What string

const (
	Rows     What = "rows"
	Labels   What = "labels"
	Metadata What = "metadata"
)

// Lost describes data that queries do not find since a file was set aside.
type Lost struct {
	What What `json:"what"`
	// Text describes the data in a few words, such as "12 samples of 3 series".
	Text string `json:"text"`
	// Signal is that of the data; 0: both.
	Signal model.Signal `json:"signal,omitempty"`
	// Range bounds the times of the data. The zero range means that the times are unknown.
	Range model.TimeRange `json:"range"`
}

// Touches reports whether the result of a query of a signal and a range may lack what the note says.
func (n *Note) Touches(signal model.Signal, in model.TimeRange) bool {
	l := n.Lost
	return l != nil && l.What != Metadata && (l.Signal == 0 || l.Signal == signal) &&
		(l.Range == model.TimeRange{} || l.Range.Min <= in.Max && in.Min <= l.Range.Max)
}

// Warning is the text for users of queries that the note touches.
func (n *Note) Warning() string {
	return fmt.Sprintf("the result may lack %s: %s was damaged and set aside at %s", n.Lost.Text, n.From, n.At.UTC().Format(time.RFC3339))
}

// Move moves a file of the data folder root into the folder, with a note. file is its path below root.
func Move(fs vfs.FS, root, file string, n Note) error {
	return setAside(fs, root, file, n, fs.Rename)
}

// Keep is Move for a file that is replaced or deleted afterwards: the folder gets a link to it.
func Keep(fs vfs.FS, root, file string, n Note) error {
	return setAside(fs, root, file, n, func(from, to string) error { return vfs.LinkOrCopy(fs, from, to) })
}

// Record writes a note about a file that is missing.
func Record(fs vfs.FS, root, file string, n Note) error { return setAside(fs, root, file, n, nil) }

func setAside(fs vfs.FS, root, file string, n Note, move func(from, to string) error) error {
	dir := fs.PathJoin(root, Folder)
	fail := func(err error) error {
		return fmt.Errorf("%w: set %s aside: %w", model.ErrTransient, fs.PathJoin(root, file), err)
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return fail(err)
	}
	name, err := freeName(fs, dir, strings.ReplaceAll(file, "/", "-"))
	if err != nil {
		return fail(err)
	}
	if n.From = file; move != nil {
		n.File = name
	}
	if n.At.IsZero() {
		n.At = time.Now()
	}
	// The note comes first: a file without a note would be lost from sight.
	if err := writeNote(fs, fs.PathJoin(dir, name+noteSuffix), &n); err != nil {
		return fail(err)
	}
	if err := errors.Join(syncDir(fs, root), syncDir(fs, dir)); err != nil {
		return fail(err)
	}
	if move == nil {
		return nil
	}
	from := fs.PathJoin(root, file)
	if err := move(from, fs.PathJoin(dir, name)); err != nil {
		return fail(err)
	}
	if err := errors.Join(syncDir(fs, fs.PathDir(from)), syncDir(fs, dir)); err != nil {
		return fail(err)
	}
	return nil
}

// freeName returns a name that no file of the folder has: a folder may be repaired more than once.
func freeName(fs vfs.FS, dir, name string) (string, error) {
	for i := 1; ; i++ {
		try := name
		if i > 1 {
			try = fmt.Sprintf("%s.%d", name, i)
		}
		_, err := fs.Stat(fs.PathJoin(dir, try+noteSuffix))
		if errors.Is(err, os.ErrNotExist) {
			return try, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// writeNote makes a note durable at once, so that a crash leaves all of it or nothing. The caller syncs the
// folder.
func writeNote(fs vfs.FS, path string, n *Note) error {
	body, err := json.MarshalIndent(n, "", " ")
	if err != nil {
		return err
	}
	f, err := fs.Create(path+".tmp", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(append(body, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return fs.Rename(path+".tmp", path)
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// maxNoteBytes bounds what is read of a note.
const maxNoteBytes = 1 << 20

// Notes reads all notes of a data folder. A note that cannot be read is an error; the others are returned.
func Notes(fs vfs.FS, root string) ([]Note, error) {
	dir := fs.PathJoin(root, Folder)
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", model.ErrTransient, dir, err)
	}
	var notes []Note
	var errs []error
	for _, name := range names {
		if !strings.HasSuffix(name, noteSuffix) {
			continue
		}
		n, err := readNote(fs, fs.PathJoin(dir, name))
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: %s: %w", model.ErrCorrupt, fs.PathJoin(dir, name), err))
			continue
		}
		notes = append(notes, n)
	}
	return notes, errors.Join(errs...)
}

func readNote(fs vfs.FS, path string) (n Note, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return n, err
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, maxNoteBytes))
	if err == nil {
		err = json.Unmarshal(body, &n)
	}
	return n, err
}
