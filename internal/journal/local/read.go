package local

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

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
	file io.Closer
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
	return &reader{
		in:   bufio.NewReaderSize(io.NewSectionReader(f, segmentHeader, s.size-segmentHeader), readBuffer),
		file: f, path: path, off: segmentHeader, seq: s.first, size: s.size,
	}, nil
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
			break
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
	later, found, ioErr := d.findWitness(s, r.off, r.seq)
	if ioErr != nil {
		return tail{}, ioErr
	}
	if found {
		return tail{}, fmt.Errorf("%w (the frame at offset %d says that it was durable)", r.corrupt(err), later)
	}
	return t, nil
}

// findWitness looks after a bad frame for a valid one that was written when the bad one was already durable.
func (d folder) findWitness(s *segment, off int64, bad uint64) (at int64, found bool, err error) {
	f, err := d.fs.Open(d.file(s.name))
	if err != nil {
		return 0, false, fmt.Errorf("journal %s: %w: %w", d.file(s.name), model.ErrTransient, err)
	}
	defer f.Close()
	most := bad + uint64(s.size-off)/frameHeader
	buf := make([]byte, min(readBuffer, s.size-off))
	for off+frameHeader <= s.size {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), s.size-off)], off)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, false, fmt.Errorf("journal %s: offset %d: %w: %w", d.file(s.name), off, model.ErrTransient, err)
		}
		if n < frameHeader {
			return 0, false, nil
		}
		for i := 0; i+frameHeader <= n; i++ {
			if seq := binary.LittleEndian.Uint64(buf[i+8:]); seq <= bad || seq > most {
				continue
			}
			if fr, ok := parseFrame(buf[i : i+frameHeader]); ok && fr.durable() >= bad {
				return off + int64(i), true, nil
			}
		}
		off += int64(n - frameHeader + 1)
	}
	return 0, false, nil
}
