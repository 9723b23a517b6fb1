package load

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

	"github.com/shaledb/shale/internal/model"
)

// A state file lets a later process verify what an earlier one sent: a line of JSON with the shape of the load, then
// records of 24 bytes, little-endian:
//
//	[kind: 4][a: 8][b: 8][CRC32C of these 20 bytes: 4]
//
// Records are appended as things happen and not synced: the file outlives the server that is killed, not the machine.
//
// Each version knows more shapes of load than the one before; version 3 knows lines of logs. Older files are read as they
// always were.
const (
	stateVersion = 3
	recordBytes  = 24
)

type recordKind uint32

// The kinds of records, with the meaning of a and b.
const (
	recordAck     recordKind = 1 // round, batch: acknowledged
	recordFail    recordKind = 2 // round, batch: sent and not acknowledged
	recordReading recordKind = 3 // Unix ns, value of the server's counter of received points
	recordAway    recordKind = 4 // Unix ns, 0: the counter could not be read
	recordLost    recordKind = 5 // connection, points: a connection broke
	recordSent    recordKind = 6 // connection, points: written in all, at the end
	recordEnd     recordKind = 7 // Unix ns, 0: the load ended in an orderly way; nothing is in flight
	recordLife    recordKind = 8 // Unix ns, bits of a float: start of the server's process, for the readings that follow
)

// Header is the first line of a state file: everything that the names, times and values of a load depend on.
type Header struct {
	Version  int      `json:"version"`
	Timeline Timeline `json:"timeline"`
	// Exactly one of the three is set.
	RemoteWrite *Fleet  `json:"remote_write,omitempty"`
	Graphite    *Agents `json:"graphite,omitempty"`
	Logs        *Logs   `json:"logs,omitempty"`
	// Batch is the number of series per request of a remote write load.
	Batch int `json:"batch,omitempty"`
	// Disorder is set if samples of a remote write load are late or sent twice.
	Disorder *Disorder `json:"disorder,omitempty"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// StateWriter appends to a state file. It may be used by several goroutines; a nil one does nothing.
type StateWriter struct {
	mu  sync.Mutex
	f   vfs.File
	err error
}

// CreateState makes a state file. One that exists is not overwritten, because it may be the only witness of a load.
func CreateState(fs vfs.FS, path string, h Header) (*StateWriter, error) {
	if _, err := fs.Stat(path); err == nil {
		return nil, fmt.Errorf("%w: load: state file %s exists; remove it, or verify it with --verify-only", model.ErrInvalid, path)
	}
	h.Version = stateVersion
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
	return &StateWriter{f: f}, nil
}

func closing(f io.Closer, err error) error {
	if cerr := f.Close(); err == nil {
		return cerr
	}
	return err
}

// append writes one record. The first error is kept and returned by Close: a load whose witness failed must say so.
func (w *StateWriter) append(kind recordKind, a, b uint64) {
	if w == nil {
		return
	}
	var rec [recordBytes]byte
	binary.LittleEndian.PutUint32(rec[:], uint32(kind))
	binary.LittleEndian.PutUint64(rec[4:], a)
	binary.LittleEndian.PutUint64(rec[12:], b)
	binary.LittleEndian.PutUint32(rec[20:], crc32.Checksum(rec[:20], castagnoli))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		_, w.err = w.f.Write(rec[:])
	}
}

// Close closes the file and returns the first error that writing it met.
func (w *StateWriter) Close() error {
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

// State is what a state file says.
type State struct {
	Header
	Acks  *Acks
	Trail Trail
	// Ended is set if the load came to an orderly end: what no record mentions was never sent.
	Ended bool

	life float64 // of the readings that come next
}

// newState is the state of a load that has sent nothing yet.
func newState(h Header) *State {
	s := &State{Header: h}
	switch {
	case h.RemoteWrite != nil:
		s.Acks = NewAcks(h.RemoteWrite.batches(h.Batch))
	case h.Graphite != nil:
		s.Trail.Sent = make([]uint64, h.Graphite.Connections)
	case h.Logs != nil:
		s.Acks = NewAcks(h.Logs.nodes())
	}
	return s
}

// LoadState reads a state file. A last record that is cut short is left out; other damage is an error of class
// [model.ErrCorrupt].
func LoadState(fs vfs.FS, path string) (*State, error) {
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
	s := newState(h)
	for i := 0; i+recordBytes <= len(records); i += recordBytes {
		rec := records[i : i+recordBytes]
		a, b := binary.LittleEndian.Uint64(rec[4:]), binary.LittleEndian.Uint64(rec[12:])
		if crc32.Checksum(rec[:20], castagnoli) != binary.LittleEndian.Uint32(rec[20:]) || !s.apply(recordKind(binary.LittleEndian.Uint32(rec)), a, b) {
			return nil, fmt.Errorf("%w: load: record at byte %d", model.ErrCorrupt, len(line)+1+i)
		}
	}
	return s, nil
}

func (h *Header) check() error {
	ok := h.Version >= 1 && h.Version <= stateVersion && h.Timeline.Step > 0
	switch {
	case h.Logs != nil && h.RemoteWrite == nil && h.Graphite == nil:
		ok = ok && h.Logs.Check() == nil
	case h.Logs != nil:
		ok = false
	case h.RemoteWrite != nil && h.Graphite == nil:
		ok = ok && h.Batch > 0 && h.RemoteWrite.Check() == nil && h.RemoteWrite.batches(h.Batch) <= maxBatches &&
			int64(h.RemoteWrite.Churn.Jitter) < h.Timeline.Step && (h.Disorder == nil || h.Disorder.check() == nil)
	case h.Graphite != nil && h.RemoteWrite == nil:
		ok = ok && h.Graphite.Check() == nil
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("%w: load: header describes no load of version %d", model.ErrCorrupt, stateVersion)
	}
	return nil
}

// maxStateRounds bounds what a damaged record can make the reader allocate.
const (
	maxStateRounds = 1 << 26
	maxStateBits   = 1 << 36
)

// apply takes one record in and reports whether it makes sense in this file.
func (s *State) apply(kind recordKind, a, b uint64) bool {
	switch kind {
	case recordAck, recordFail:
		if s.Acks == nil || a >= maxStateRounds || b >= uint64(s.Acks.batches) || a*uint64(s.Acks.batches) > maxStateBits {
			return false
		}
		if kind == recordAck {
			s.Acks.Ack(int(a), int(b))
		} else {
			s.Acks.Fail(int(a), int(b))
		}
	case recordReading:
		s.Trail.Readings = append(s.Trail.Readings, Reading{At: int64(a), Received: b, Life: s.life})
	case recordAway:
		s.Trail.Readings = append(s.Trail.Readings, Reading{At: int64(a), Away: true})
	case recordLost:
		s.Trail.Broken = true
	case recordSent:
		if a >= uint64(len(s.Trail.Sent)) {
			return false
		}
		s.Trail.Sent[a] = b
	case recordEnd:
		s.Ended = true
	case recordLife:
		s.life = math.Float64frombits(b)
	default:
		return false
	}
	return true
}

// promised reports whether there is anything that the store must have: an acknowledged request, a point that the server
// has counted, or points that the caller knows of.
func (s *State) promised(sentBefore uint64) bool {
	if s.Acks != nil {
		return s.Acks.any()
	}
	return sentBefore > 0 || s.Trail.Kept() > 0
}
