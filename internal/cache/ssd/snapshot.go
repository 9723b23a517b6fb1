package ssd

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The snapshot keeps what the segments do not say: which records queries have used, which decides what is
// reinserted; the hashes of values that one query wanted; and what is left of the write budget. A tier
// without one has all its records, in the order in which they were written.
//
//	u64 magic, u64 time in nanoseconds, i64 bytes left of the budget, u32 number of records, u32 number of
//	hashes, records, hashes, u32 checksum of all before it
const (
	snapshotName  = "snapshot"
	snapshotMagic = 0x3150414e53445353 // "SSDSNAP1"
	snapshotHead  = 32
	// snapshotEvery is the interval of snapshots. A snapshot has 8 bytes for each record in use and for each
	// hash, which is far less than what the tier writes otherwise.
	snapshotEvery = 5 * time.Minute
)

type snapshot struct {
	at     time.Time
	left   int64
	used   []uint64 // see index.used
	ghosts []uint64 // see [admit.Filter.Ghosts]
}

func (sn *snapshot) append(dst []byte) []byte {
	from := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, snapshotMagic)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(sn.at.UnixNano()))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(sn.left))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(sn.used)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(sn.ghosts)))
	for _, list := range [][]uint64{sn.used, sn.ghosts} {
		for _, v := range list {
			dst = binary.LittleEndian.AppendUint64(dst, v)
		}
	}
	return binary.LittleEndian.AppendUint32(dst, sum(0, dst[from:]))
}

func parseSnapshot(b []byte) (*snapshot, error) {
	if len(b) < snapshotHead+4 || binary.LittleEndian.Uint64(b) != snapshotMagic {
		return nil, corrupt("the snapshot is truncated, or another kind of file")
	}
	used, ghosts := uint64(binary.LittleEndian.Uint32(b[24:])), uint64(binary.LittleEndian.Uint32(b[28:]))
	if want := snapshotHead + 8*(used+ghosts) + 4; want != uint64(len(b)) {
		return nil, corrupt("expected a snapshot of %d bytes, got %d", want, len(b))
	}
	body, check := b[:len(b)-4], b[len(b)-4:]
	if binary.LittleEndian.Uint32(check) != sum(0, body) {
		return nil, corrupt("the checksum of the snapshot does not match")
	}
	list := func(b []byte) []uint64 {
		l := make([]uint64, len(b)/8)
		for i := range l {
			l[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
		return l
	}
	return &snapshot{
		at: time.Unix(0, int64(binary.LittleEndian.Uint64(b[8:]))), left: int64(binary.LittleEndian.Uint64(b[16:])),
		used: list(body[snapshotHead:][:8*used]), ghosts: list(body[snapshotHead+8*used:]),
	}, nil
}

// save writes a snapshot, within the size of a segment.
func (s *Store) save(now time.Time) {
	s.nextSaved = now.Add(snapshotEvery)
	sn := snapshot{at: now, used: s.index.used(), ghosts: s.filter.Ghosts()}
	// The old snapshot stays until the new one is complete.
	most := int(s.segmentBytes/2-snapshotHead-4) / 8
	sn.used = sn.used[:min(len(sn.used), most)]
	sn.ghosts = sn.ghosts[:min(len(sn.ghosts), most-len(sn.used))]
	s.budget.spendAnyway(int64(snapshotHead + 8*(len(sn.used)+len(sn.ghosts)) + 4))
	sn.left = s.budget.left.Load()
	b := sn.append(nil)
	s.m.written.Add(float64(len(b)))
	if err := s.writeFile(snapshotName, b); err != nil {
		s.health.writeFailed(err)
	}
}

// writeFile replaces a small file.
func (s *Store) writeFile(name string, b []byte) (err error) {
	path := s.o.FS.PathJoin(s.o.Dir, name)
	f, err := s.o.FS.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, s.o.FS.Remove(path+".new"))
	}
	return s.o.FS.Rename(path+".new", path)
}

// restore applies the snapshot, if there is one that can be read. Without one, a tier that has content may
// write an hour's share of its budget at once, and an empty one a day's.
func (s *Store) restore() {
	now := s.o.Now()
	s.nextSaved = now.Add(snapshotEvery)
	s.budget.at = now
	s.budget.left.Store(s.budget.daily)
	sn, err := s.readSnapshot()
	if err != nil {
		if s.index.entries.Load() > 0 {
			s.budget.left.Store(s.budget.daily / 24)
			s.o.Logger.Warn("the SSD cache has no snapshot that can be read: it keeps its records, but not which of them were used", "dir", s.o.Dir, "err", err)
		}
		return
	}
	s.index.restore(sn.used)
	s.filter.Restore(sn.ghosts)
	s.budget.left.Store(max(min(sn.left, s.budget.daily), math.MinInt64/2))
	s.budget.at = sn.at
	s.budget.refill(now)
}

func (s *Store) readSnapshot() (*snapshot, error) {
	f, err := s.o.FS.Open(s.o.FS.PathJoin(s.o.Dir, snapshotName))
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, s.segmentBytes))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return parseSnapshot(b)
}
