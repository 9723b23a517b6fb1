package local

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
)

const (
	segmentSuffix = ".journal"
	// A segment has this suffix until its header is durable, so that a segment without the suffix always has a
	// header.
	unfinishedSuffix = ".journal.new"
)

// segment is a file of the journal. Its records are [header.first, last]; later bytes of the file are
// ignored.
type segment struct {
	header
	name string
	// last is the sequence number of the last record, or header.first-1 if there is none. Of all segments but
	// the newest it is the next one's header.before.
	last uint64
	size int64
	// damaged says why the header cannot be read. Then first is that of the name, before is first-1, and the
	// seed is unknown.
	damaged error
}

func segmentName(first uint64) string { return fmt.Sprintf("%020d%s", first, segmentSuffix) }

// parseName returns the first sequence number, which is the name of the file.
func parseName(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	first, err := strconv.ParseUint(digits, 10, 64)
	return first, err == nil
}

// folder is the folder of the segments.
type folder struct {
	fs   vfs.FS
	path string
	// covered is the last record whose rows and labels are in parts. Damage of records up to it loses nothing:
	// skipped is told, and reading continues.
	covered uint64
	skipped func(Damage)
}

// Damage is a stretch of a segment that lacks the records First to Last.
type Damage struct {
	// File is the path of the segment.
	File   string
	Offset int64
	Bytes  int64
	First  uint64
	Last   uint64
	// End says that the stretch is the end of the newest segment. A crash leaves an end that holds nothing
	// acknowledged, and damage of the last records looks the same. Last is unknown.
	End bool
	Why error
}

func (d folder) file(name string) string { return d.fs.PathJoin(d.path, name) }

// sync makes the entries of the folder durable.
func (d folder) sync() error { return syncDir(d.fs, d.path) }

func syncDir(fs vfs.FS, path string) error {
	f, err := fs.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// create makes a durable segment with a header and the given frames, and returns it open at its end. It
// replaces a segment of the same name, whose valid records are all in the new one.
func (d folder) create(h header, frames []byte) (vfs.File, *segment, error) {
	final := d.file(segmentName(h.first))
	temporary := d.file(fmt.Sprintf("%020d%s", h.first, unfinishedSuffix))
	f, err := d.fs.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, nil, err
	}
	content := append(h.append(nil), frames...)
	s := &segment{header: h, name: segmentName(h.first), last: h.first - 1, size: int64(len(content))}
	if _, err = f.Write(content); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = d.fs.Rename(temporary, final)
	}
	if err == nil {
		err = d.sync()
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, s, nil
}

// list returns the segments in order, with their headers read and checked against each other.
func (d folder) list() ([]*segment, error) {
	segs, err := d.survey()
	if err != nil {
		return nil, err
	}
	for i, s := range segs {
		newest := i == len(segs)-1
		switch {
		case s.damaged != nil && (newest || segs[i+1].before > d.covered):
			return nil, s.damaged
		case s.damaged != nil:
			d.skipped(Damage{File: d.file(s.name), Bytes: s.size, First: s.first, Last: s.last, Why: s.damaged})
		case !newest && (s.last < s.first-1 || segs[i+1].damaged == nil && s.seed != segs[i+1].seed):
			return nil, fmt.Errorf("journal %s: %w: segment cannot follow %s", d.file(segs[i+1].name), model.ErrCorrupt, s.name)
		}
	}
	return segs, nil
}

// survey is list without the checks: segments with damaged headers are among the result.
func (d folder) survey() ([]*segment, error) {
	names, err := d.fs.List(d.path)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w: %w", d.path, model.ErrTransient, err)
	}
	var segs []*segment
	for _, name := range names {
		first, ok := parseName(name)
		if !ok {
			continue
		}
		s, err := d.open(name)
		if err != nil {
			return nil, err
		}
		if s.damaged == nil && s.first != first {
			s.damaged = fmt.Errorf("journal %s: %w: the header has another first record: %d", d.file(name), model.ErrCorrupt, s.first)
		}
		if s.damaged != nil {
			s.header = header{first: first, before: first - 1}
			s.last = first - 1
		}
		segs = append(segs, s)
	}
	sortSegments(segs)
	for i, s := range segs[:max(len(segs)-1, 0)] {
		s.last = segs[i+1].before
	}
	return segs, nil
}

// open reads the header of a segment.
func (d folder) open(name string) (*segment, error) {
	f, err := d.fs.Open(d.file(name))
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w: %w", d.file(name), model.ErrTransient, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w: %w", d.file(name), model.ErrTransient, err)
	}
	var buf [segmentHeader]byte
	n, err := f.ReadAt(buf[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("journal %s: %w: %w", d.file(name), model.ErrTransient, err)
	}
	h, err := parseHeader(buf[:n])
	if err != nil {
		err = fmt.Errorf("journal %s: %w", d.file(name), err)
		if !errors.Is(err, model.ErrCorrupt) {
			return nil, err
		}
		return &segment{name: name, size: info.Size(), damaged: err}, nil
	}
	return &segment{header: h, name: name, last: h.first - 1, size: info.Size()}, nil
}
