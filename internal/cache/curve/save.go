package curve

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zeebo/xxh3"

	"github.com/shaledb/shale/internal/cache/ledger"
	"github.com/shaledb/shale/internal/model"
)

// The files of the folder.
const (
	hoursFile  = "hours.json" // the curves
	sampleFile = "sample"     // recent touches of the sample, which fill the simulated caches at the next start
)

// maxHoursBytes bounds what is read of the curves.
const maxHoursBytes = 8 << 20

// history is the content of the file of curves.
type history struct {
	Version int    `json:"version"`
	Hours   []Hour `json:"hours"`
}

const historyVersion = 1

// seen is a recent touch.
type seen struct {
	Key       uint64
	Query     uint32
	RAM, Disk uint32
	Flags     uint32
}

const (
	seenLocal = 1 << iota
	seenFresh
)

// recent is the last touches of the sample.
type recent struct {
	touches []seen
	next    int
}

func (r *recent) note(t *ledger.Touch, ramBytes, diskBytes uint32) {
	s := seen{Key: t.Key, Query: uint32(t.Query), RAM: ramBytes, Disk: diskBytes}
	if t.Local {
		s.Flags |= seenLocal
	}
	if t.Fresh {
		s.Flags |= seenFresh
	}
	if len(r.touches) < cap(r.touches) {
		r.touches = append(r.touches, s)
		return
	}
	r.touches[r.next] = s
	r.next = (r.next + 1) % len(r.touches)
}

// at returns a touch by its age, the oldest first.
func (r *recent) at(i int) *seen { return &r.touches[(r.next+i)%len(r.touches)] }

// The form of the sample: magic, limit, records, and a hash of all of it. Numbers are little-endian.
const (
	sampleMagic  = "shalesm1"
	sampleHead   = len(sampleMagic) + 8
	sampleRecord = 24
)

func (r *recent) encode(limit uint64) []byte {
	b := binary.LittleEndian.AppendUint64([]byte(sampleMagic), limit)
	for i := range r.touches {
		s := r.at(i)
		b = binary.LittleEndian.AppendUint64(b, s.Key)
		for _, n := range []uint32{s.Query, s.RAM, s.Disk, s.Flags} {
			b = binary.LittleEndian.AppendUint32(b, n)
		}
	}
	return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b))
}

// decodeSample returns the limit and the touches of a file.
func decodeSample(b []byte) (limit uint64, touches []seen, err error) {
	n := len(b) - sampleHead - 8
	if n < 0 || n%sampleRecord != 0 || string(b[:len(sampleMagic)]) != sampleMagic {
		return 0, nil, fmt.Errorf("%w: sample of cache touches: %d bytes have another form", model.ErrCorrupt, len(b))
	}
	if got, want := xxh3.Hash(b[:len(b)-8]), binary.LittleEndian.Uint64(b[len(b)-8:]); got != want {
		return 0, nil, fmt.Errorf("%w: sample of cache touches: expected the hash %016x, got %016x", model.ErrCorrupt, want, got)
	}
	limit = binary.LittleEndian.Uint64(b[len(sampleMagic):])
	for at := b[sampleHead : len(b)-8]; len(at) > 0; at = at[sampleRecord:] {
		touches = append(touches, seen{
			Key: binary.LittleEndian.Uint64(at), Query: binary.LittleEndian.Uint32(at[8:]),
			RAM: binary.LittleEndian.Uint32(at[12:]), Disk: binary.LittleEndian.Uint32(at[16:]), Flags: binary.LittleEndian.Uint32(at[20:]),
		})
	}
	return limit, touches, nil
}

// decodeHours returns the curves of a file. Hours with other factors than those of this program are left out.
func decodeHours(b []byte) ([]Hour, error) {
	var h history
	if err := json.Unmarshal(b, &h); err != nil {
		return nil, fmt.Errorf("%w: curves of the cache: %v", model.ErrCorrupt, err)
	}
	if h.Version != historyVersion {
		return nil, fmt.Errorf("%w: curves of the cache: expected version %d, got %d", model.ErrInvalid, historyVersion, h.Version)
	}
	var hours []Hour
	for _, hour := range h.Hours {
		if samePairs(hour.Points) && hour.Share > 0 && hour.Share <= 1 {
			hours = append(hours, hour)
		}
	}
	return hours[max(0, len(hours)-keptHours):], nil
}

func samePairs(points []Point) bool {
	want := pairs()
	if len(points) != len(want) {
		return false
	}
	for i, p := range points {
		if p.RAM != want[i].RAM || p.SSD != want[i].SSD || p.First < 0 {
			return false
		}
	}
	return true
}

// load reads what an earlier process has kept.
func (s *Sampler) load() error {
	if s.o.FS == nil {
		return nil
	}
	if err := s.o.FS.MkdirAll(s.o.Dir, 0o755); err != nil {
		return fmt.Errorf("%w: curves of the cache: %v", model.ErrTransient, err)
	}
	warn := func(err error) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.o.Logger.Warn("cannot read the history of the cache; starting without it", "dir", s.o.Dir, "err", err)
		}
	}
	b, err := s.read(hoursFile, maxHoursBytes)
	if err == nil {
		s.hours, err = decodeHours(b)
	}
	warn(err)
	b, err = s.read(sampleFile, int64(sampleHead+8+mostKeys*recentPerKey*sampleRecord))
	var touches []seen
	var limit uint64
	if err == nil {
		limit, touches, err = decodeSample(b)
	}
	warn(err)
	if err != nil || limit == 0 {
		return nil
	}
	s.limit.Store(limit)
	s.caches = s.mustCaches()
	for _, t := range touches {
		s.apply(&ledger.Touch{
			Key: t.Key, Query: uint64(t.Query), Bytes: uint32(min(max(int64(t.RAM)-ramOverhead, 1), math.MaxInt32)), Stored: uint32(min(max(int64(t.Disk)-diskRecordBytes, 1), math.MaxInt32)),
			Local: t.Flags&seenLocal != 0, Fresh: t.Flags&seenFresh != 0,
		})
	}
	return nil
}

func (s *Sampler) read(name string, most int64) ([]byte, error) {
	f, err := s.o.FS.Open(s.o.FS.PathJoin(s.o.Dir, name))
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		return nil, fmt.Errorf("%w: %s is larger than %d bytes", model.ErrCorrupt, name, most)
	}
	return b, err
}

// save writes the curves and the recent touches. What fails is tried again later.
func (s *Sampler) save() {
	if s.o.FS == nil {
		return
	}
	hours := append(append([]Hour(nil), s.hours...), s.hour(s.o.Now()))
	b, err := json.Marshal(history{historyVersion, hours})
	if err == nil {
		err = s.write(hoursFile, b)
	}
	if err == nil {
		err = s.write(sampleFile, s.recent.encode(s.limit.Load()))
	}
	if err != nil {
		s.o.Logger.Warn("cannot save the curves of the cache; retrying in some minutes", "dir", s.o.Dir, "err", err)
	}
}

// write replaces a file. It is not synced: after a power cut it is damaged at worst, and counts as missing.
func (s *Sampler) write(name string, b []byte) error {
	path := s.o.FS.PathJoin(s.o.Dir, name)
	f, err := s.o.FS.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return s.o.FS.Rename(path+".new", path)
}
