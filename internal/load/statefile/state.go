package statefile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/lines"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/model"
)

// A state file lets a later process verify what an earlier one sent: a line of JSON with the shape of the
// load, then records of 24 bytes, little-endian:
//
//	[kind: 4][a: 8][b: 8][CRC32C of these 20 bytes: 4]
//
// Records are appended as things happen and not synced: the file survives a kill of the server, but not a
// crash of the machine.
//
// Each version knows more shapes of load than the one before; version 3 adds log lines. Older files stay
// readable.
const (
	StateVersion = 3
	recordBytes  = 24
)

type recordKind uint32

// The kinds of records, with the meaning of a and b.
const (
	RecordAck     recordKind = 1 // round, batch: acknowledged
	RecordFail    recordKind = 2 // round, batch: sent and not acknowledged
	RecordReading recordKind = 3 // Unix ns, value of the server's counter of received points
	RecordAway    recordKind = 4 // Unix ns, 0: the counter could not be read
	RecordLost    recordKind = 5 // connection, points: a connection broke
	RecordSent    recordKind = 6 // connection, points: written in all, at the end
	RecordEnd     recordKind = 7 // Unix ns, 0: the load ended normally; no request is in flight
	RecordLife    recordKind = 8 // Unix ns, bits of a float: start of the server's process, for later readings
)

// Header is the first line of a state file: everything that the names, times and values of a load depend on.
type Header struct {
	Version  int           `json:"version"`
	Timeline pace.Timeline `json:"timeline"`
	// Exactly one of the three is set.
	RemoteWrite *fleet.Fleet  `json:"remote_write,omitempty"`
	Graphite    *fleet.Agents `json:"graphite,omitempty"`
	Logs        *lines.Shape  `json:"logs,omitempty"`
	// Batch is the number of series per request of a remote write load.
	Batch int `json:"batch,omitempty"`
	// Disorder is set if samples of a remote write load are late or sent twice.
	Disorder *fleet.Disorder `json:"disorder,omitempty"`
}

var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Writer appends to a state file. Several goroutines may use it; a nil one does nothing.
type Writer struct {
	mu  sync.Mutex
	f   vfs.File
	err error
}

// Create makes a state file. It does not overwrite a file, because that may be the only record of a load.
func Create(fs vfs.FS, path string, h Header) (*Writer, error) {
	if _, err := fs.Stat(path); err == nil {
		return nil, fmt.Errorf("%w: load: state file %s exists; remove it, or verify it with --verify-only", model.ErrInvalid, path)
	}
	h.Version = StateVersion
	line, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("%w: load: state file %s: %w", model.ErrInvalid, path, err)
	}
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("%w: load: state file: %w", model.ErrTransient, err)
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("%w: load: state file %s: %w", model.ErrTransient, path, closing(f, err))
	}
	return &Writer{f: f}, nil
}

func closing(f io.Closer, err error) error {
	if cerr := f.Close(); err == nil {
		return cerr
	}
	return err
}

// Append writes one record. Close returns the first error: a load must report that its record is incomplete.
func (w *Writer) Append(kind recordKind, a, b uint64) {
	if w == nil {
		return
	}
	var rec [recordBytes]byte
	binary.LittleEndian.PutUint32(rec[:], uint32(kind))
	binary.LittleEndian.PutUint64(rec[4:], a)
	binary.LittleEndian.PutUint64(rec[12:], b)
	binary.LittleEndian.PutUint32(rec[20:], crc32.Checksum(rec[:20], Castagnoli))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		_, w.err = w.f.Write(rec[:])
	}
}

// Close closes the file and returns the first error that writing it met.
func (w *Writer) Close() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := closing(w.f, w.err); err != nil {
		return fmt.Errorf("%w: load: state file: %w", model.ErrTransient, err)
	}
	return nil
}

// State is the content of a state file.
type State struct {
	Header
	Acks  *Acks
	Trail Trail
	// Ended is set if the load ended normally: a batch without a record was never sent.
	Ended bool

	life float64 // of the next readings
}

// New returns the state of a load that has sent nothing yet.
func New(h Header) *State {
	s := &State{Header: h}
	switch {
	case h.RemoteWrite != nil:
		s.Acks = NewAcks(h.RemoteWrite.Batches(h.Batch))
	case h.Graphite != nil:
		s.Trail.Sent = make([]uint64, h.Graphite.Connections)
	case h.Logs != nil:
		s.Acks = NewAcks(h.Logs.Nodes())
	}
	return s
}

// Load reads a state file. A last record that is cut short is left out; other damage is an error of class
// [model.ErrCorrupt].
func Load(fs vfs.FS, path string) (*State, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: load: state file: %w", model.ErrInvalid, err)
	}
	data, err := io.ReadAll(f)
	if err = closing(f, err); err != nil {
		return nil, fmt.Errorf("%w: load: state file %s: %w", model.ErrTransient, path, err)
	}
	s, err := parseState(data)
	if err != nil {
		return nil, fmt.Errorf("state file %s: %w", path, err)
	}
	return s, nil
}

func parseState(data []byte) (*State, error) {
	line, records, _ := bytes.Cut(data, []byte{'\n'})
	var h Header
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, fmt.Errorf("%w: load: header: %w", model.ErrCorrupt, err)
	}
	if err := h.check(); err != nil {
		return nil, err
	}
	s := New(h)
	for i := 0; i+recordBytes <= len(records); i += recordBytes {
		rec := records[i : i+recordBytes]
		a, b := binary.LittleEndian.Uint64(rec[4:]), binary.LittleEndian.Uint64(rec[12:])
		if crc32.Checksum(rec[:20], Castagnoli) != binary.LittleEndian.Uint32(rec[20:]) || !s.apply(recordKind(binary.LittleEndian.Uint32(rec)), a, b) {
			return nil, fmt.Errorf("%w: load: record at byte %d", model.ErrCorrupt, len(line)+1+i)
		}
	}
	return s, nil
}

func (h *Header) check() error {
	ok := h.Version >= 1 && h.Version <= StateVersion && h.Timeline.Step > 0
	switch {
	case h.Logs != nil && h.RemoteWrite == nil && h.Graphite == nil:
		ok = ok && h.Logs.Check() == nil
	case h.Logs != nil:
		ok = false
	case h.RemoteWrite != nil && h.Graphite == nil:
		ok = ok && h.Batch > 0 && h.RemoteWrite.Check() == nil && h.RemoteWrite.Batches(h.Batch) <= MaxBatches &&
			int64(h.RemoteWrite.Churn.Jitter) < h.Timeline.Step && (h.Disorder == nil || h.Disorder.Check() == nil)
	case h.Graphite != nil && h.RemoteWrite == nil:
		ok = ok && h.Graphite.Check() == nil
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("%w: load: header describes no load of version %d", model.ErrCorrupt, StateVersion)
	}
	return nil
}

// maxStateRounds bounds what a damaged record can make the reader allocate.
const (
	maxStateRounds = 1 << 26
	maxStateBits   = 1 << 36
)

// apply adds one record and reports whether it is valid in this file.
func (s *State) apply(kind recordKind, a, b uint64) bool {
	switch kind {
	case RecordAck, RecordFail:
		if s.Acks == nil || a >= maxStateRounds || b >= uint64(s.Acks.Batches) || a*uint64(s.Acks.Batches) > maxStateBits {
			return false
		}
		if kind == RecordAck {
			s.Acks.Ack(int(a), int(b))
		} else {
			s.Acks.Fail(int(a), int(b))
		}
	case RecordReading:
		s.Trail.Readings = append(s.Trail.Readings, Reading{At: int64(a), Received: b, Life: s.life})
	case RecordAway:
		s.Trail.Readings = append(s.Trail.Readings, Reading{At: int64(a), Away: true})
	case RecordLost:
		s.Trail.Broken = true
	case RecordSent:
		if a >= uint64(len(s.Trail.Sent)) {
			return false
		}
		s.Trail.Sent[a] = b
	case RecordEnd:
		s.Ended = true
	case RecordLife:
		s.life = math.Float64frombits(b)
	default:
		return false
	}
	return true
}

// Promised reports whether the store must have anything: an acknowledged request, a point that the server has
// counted, or points that the caller knows of.
func (s *State) Promised(sentBefore uint64) bool {
	if s.Acks != nil {
		return s.Acks.any()
	}
	return sentBefore > 0 || s.Trail.Kept() > 0
}

// MaxBatches bounds the memory that acknowledgements take: two bits for each request.
const MaxBatches = 1 << 28
