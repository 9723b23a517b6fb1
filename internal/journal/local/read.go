package local

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
)

func sortSegments(segs []*segment) {
	slices.SortFunc(segs, func(a, b *segment) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
}

// readBuffer is how much of a segment is read at a time.
const readBuffer = 1 << 20

// reader reads the frames of one segment, one after the other.
type reader struct {
	in   *bufio.Reader
	file vfs.File
	path string
	// off is the offset of the next frame, seq its expected sequence number.
	off  int64
	seq  uint64
	size int64

	frame  frame
	record []byte
}

func (d folder) read(s *segment) (*reader, error) {
	path := d.file(s.name)
	f, err := d.fs.Open(path)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w: %w", path, model.ErrTransient, err)
	}
	r := &reader{in: bufio.NewReaderSize(nil, readBuffer), file: f, path: path, size: s.size}
	r.seek(segmentHeader, s.first)
	return r, nil
}

// seek makes a frame the next one.
func (r *reader) seek(off int64, seq uint64) {
	r.off, r.seq = off, seq
	r.in.Reset(io.NewSectionReader(r.file, off, max(r.size-off, 0)))
}

func (r *reader) close() { _ = r.file.Close() }

// errEnd means that there is no valid frame at the reader's offset: the file ends, or the bytes are not a
// frame.
var errEnd = errors.New("no valid frame")

// next reads the next frame into r.frame and r.record, which is valid until the call after. Its error wraps
// errEnd and gives the reason, or is of class transient if the disk cannot be read.
func (r *reader) next() error {
	var head [frameHeader]byte
	if err := r.full(head[:]); err != nil {
		return err
	}
	f, ok := parseFrame(head[:])
	switch {
	case !ok:
		return fmt.Errorf("%w: wrong checksum of the frame header", errEnd)
	case f.seq != r.seq:
		return fmt.Errorf("%w: unexpected sequence number %d", errEnd, f.seq)
	case int64(f.length) > r.size-r.off-frameHeader:
		return fmt.Errorf("%w: the record is truncated", errEnd)
	}
	if cap(r.record) < int(f.length) {
		r.record = make([]byte, f.length)
	}
	r.record = r.record[:f.length]
	if err := r.full(r.record); err != nil {
		return err
	}
	if crc32.Checksum(r.record, castagnoli) != f.crc {
		return fmt.Errorf("%w: wrong checksum of the record", errEnd)
	}
	r.frame = f
	r.off += frameHeader + int64(f.length)
	r.seq++
	return nil
}

func (r *reader) full(b []byte) error {
	_, err := io.ReadFull(r.in, b)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: the file ends", errEnd)
	}
	return fmt.Errorf("journal %s: offset %d: %w: %w", r.path, r.off, model.ErrTransient, err)
}

// corrupt turns errEnd into an error of class corrupt that names file and offset.
func (r *reader) corrupt(err error) error {
	if !errors.Is(err, errEnd) {
		return err
	}
	return fmt.Errorf("journal %s: offset %d: %w: record %d is missing: %w", r.path, r.off, model.ErrCorrupt, r.seq, err)
}

// tail describes the end of the newest segment.
type tail struct {
	// end is the offset after the last valid frame.
	end int64
	// group is the offset of the first frame of the last group, and durable the sequence number before it: no
	// later frame proves that the group is on the disk, although it can be read.
	group   int64
	durable uint64
	// torn says why no frame follows the last valid one, if the file does not end there.
	torn error
}

// findEnd reads the newest segment and sets its last record. A bad frame ends the segment, as is normal after
// a crash, unless a later frame says that it was durable: then it has been damaged since.
func (d folder) findEnd(s *segment) (tail, error) {
	r, err := d.read(s)
	if err != nil {
		return tail{}, err
	}
	defer r.close()
	t := tail{group: segmentHeader, durable: s.first - 1}
	for {
		begin := r.off
		if err = r.next(); err != nil {
			skipped, skipErr := d.skipCovered(r, err)
			if skipErr != nil {
				return tail{}, skipErr
			}
			if !skipped {
				break
			}
			// A copy of the last group must not hold the damage.
			t.group, t.durable = r.off, r.seq-1
			continue
		}
		if r.frame.unsynced == 0 {
			t.group, t.durable = begin, r.frame.seq-1
		}
	}
	if !errors.Is(err, errEnd) {
		return tail{}, err
	}
	s.last, t.end = r.seq-1, r.off
	if r.off == s.size {
		return t, nil
	}
	t.torn = err
	later, found, ioErr := r.findWitness()
	if ioErr != nil {
		return tail{}, ioErr
	}
	if found {
		return tail{}, fmt.Errorf("%w (the frame at offset %d says that it was durable)", r.corrupt(err), later)
	}
	return t, nil
}

// skipCovered moves the reader from a bad frame to the next good one if every record between them is covered,
// and tells so. Otherwise the reader stays, and it returns false.
func (d folder) skipCovered(r *reader, why error) (bool, error) {
	if !errors.Is(why, errEnd) || r.off >= r.size || r.seq > d.covered {
		return false, nil
	}
	off, first := r.off, r.seq
	found, err := r.skip(d.covered + 1)
	if found {
		d.skipped(Damage{File: r.path, Offset: off, Bytes: r.off - off, First: first, Last: r.seq - 1, Why: why})
	}
	return found, err
}

// skip moves the reader from a bad frame to the next good one, whose sequence number is at most the given
// one, and reports whether there is one.
func (r *reader) skip(most uint64) (bool, error) {
	from := r.off
	var head [frameHeader]byte
	if _, err := r.file.ReadAt(head[:], r.off); err == nil {
		// Only the record is damaged, and nothing in it is a frame.
		if f, ok := parseFrame(head[:]); ok && f.seq == r.seq && int64(f.length) <= r.size-r.off-frameHeader {
			from += frameHeader + int64(f.length)
		}
	}
	at, f, err := r.scan(from, r.seq+1, most, func(at int64, f frame) (bool, error) {
		if int64(f.length) > r.size-at-frameHeader {
			return false, nil
		}
		record := make([]byte, f.length)
		if _, err := r.file.ReadAt(record, at+frameHeader); err != nil && len(record) > 0 {
			return false, fmt.Errorf("journal %s: offset %d: %w: %w", r.path, at, model.ErrTransient, err)
		}
		return crc32.Checksum(record, castagnoli) == f.crc, nil
	})
	if err != nil || f.seq == 0 {
		return false, err
	}
	r.seek(at, f.seq)
	return true, nil
}

// findWitness looks after a bad frame for a frame header that was written when the bad frame was already
// durable.
func (r *reader) findWitness() (at int64, found bool, err error) {
	most := r.seq + uint64(r.size-r.off)/frameHeader
	at, f, err := r.scan(r.off, r.seq+1, most, func(_ int64, f frame) (bool, error) { return f.durable() >= r.seq, nil })
	return at, f.seq > 0, err
}

// scan returns the first frame header from an offset on whose sequence number is from lo to hi, and that
// accept accepts, or a zero frame.
func (r *reader) scan(off int64, lo, hi uint64, accept func(at int64, f frame) (bool, error)) (int64, frame, error) {
	buf := make([]byte, min(readBuffer, max(r.size-off, 0)))
	for off+frameHeader <= r.size {
		n, err := r.file.ReadAt(buf[:min(int64(len(buf)), r.size-off)], off)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, frame{}, fmt.Errorf("journal %s: offset %d: %w: %w", r.path, off, model.ErrTransient, err)
		}
		if n < frameHeader {
			break
		}
		for i := 0; i+frameHeader <= n; i++ {
			if seq := binary.LittleEndian.Uint64(buf[i+8:]); seq < lo || seq > hi {
				continue
			}
			f, ok := parseFrame(buf[i : i+frameHeader])
			if !ok {
				continue
			}
			if ok, err := accept(off+int64(i), f); ok || err != nil {
				return off + int64(i), f, err
			}
		}
		off += int64(n - frameHeader + 1)
	}
	return 0, frame{}, nil
}
