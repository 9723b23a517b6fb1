package aggregate

import (
	"context"
	"encoding/binary"
	"math"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/write/graphite/segment"
)

// format is the first record of a file.
const format = "shale aggregation 1"

// The kinds of entries.
const (
	entryBuffer    = 'b'
	entryValue     = 'v'
	entryInterval  = 's'
	entryForgotten = 'd'
	entryRetired   = 'r'
	entryRemoved   = 'e'
)

// log is the newest file of the log. Its fields belong to whoever holds mu.
type log struct {
	mu     sync.Mutex
	number uint64
	w      *segment.Writer // nil: there is none
	synced uint64          // the entry up to which the log is durable
	// full is the size at which a snapshot begins another file.
	full int64
	// spare is the memory of entries that have been written.
	spare []byte
	// failed is when and why a write failed last. It is tried again after retryAfter.
	failed struct {
		at  time.Time
		err error
	}
}

// The log is replaced when it has grown to leastFull and to several times the size of its snapshot.
const (
	leastFull   = 16 << 20
	growthLimit = 4
)

const retryAfter = time.Second

// The functions below add entries. REQUIRES: a.mu is held.

func (a *Aggregator) logBuffer(b *buffer)  { a.log(appendBuffer(a.pending, b)) }
func (a *Aggregator) logRetired(b *buffer) { a.log(appendID(a.pending, entryRetired, b.id)) }
func (a *Aggregator) logRemoved(b *buffer) { a.log(appendID(a.pending, entryRemoved, b.id)) }
func (a *Aggregator) logForgotten(b *buffer, start int64) {
	a.log(binary.AppendVarint(appendID(a.pending, entryForgotten, b.id), start))
}

func (a *Aggregator) logValue(b *buffer, start int64, v float64) {
	a.log(appendFloat(binary.AppendVarint(appendID(a.pending, entryValue, b.id), start), v))
}

func (a *Aggregator) log(pending []byte) {
	a.pending = pending
	a.taken++
	if a.unlogged {
		a.pending = a.pending[:0]
	}
}

func appendID(to []byte, kind byte, id uint64) []byte {
	return binary.AppendUvarint(append(to, kind), id)
}

func appendFloat(to []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(to, math.Float64bits(v))
}

func appendText(to []byte, s string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(s))), s...)
}

func appendBuffer(to []byte, b *buffer) []byte {
	to = binary.AppendUvarint(appendID(to, entryBuffer, b.id), uint64(b.frequency))
	return appendText(appendText(append(to, byte(b.method)), b.tenant), b.path)
}

func appendInterval(to []byte, b *buffer, i *interval) []byte {
	to = binary.AppendVarint(appendID(to, entryInterval, b.id), i.start)
	to = appendFloat(binary.AppendUvarint(to, uint64(i.count)), i.value)
	to = binary.AppendUvarint(to, uint64(len(i.values)))
	for _, v := range i.values {
		to = appendFloat(to, v)
	}
	return to
}

func (a *Aggregator) syncOften(ctx context.Context) {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-a.wake:
		}
		_ = a.Sync() // it counts and logs its errors
	}
}

// Sync makes durable what Take has taken. While it fails, the buffers live in memory alone.
func (a *Aggregator) Sync() error {
	a.mu.Lock()
	want := a.taken
	a.mu.Unlock()
	l := &a.file
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.synced >= want && l.w != nil {
		return nil
	}
	if l.failed.err != nil && time.Since(l.failed.at) < retryAfter {
		return l.failed.err
	}
	err := a.write()
	l.failed.at, l.failed.err = time.Now(), err
	if err != nil {
		a.metrics.logErrors.Inc()
		a.o.Logger.Error("the log of aggregation cannot be written: until it can, a crash loses what aggregates have taken", "folder", a.o.Dir, "err", err)
		a.giveUp()
	}
	return err
}

// write appends what is pending, or a snapshot to a new file. REQUIRES: a.file.mu is held.
func (a *Aggregator) write() error {
	l := &a.file
	if l.w == nil || l.w.Size() > l.full {
		return a.rotate()
	}
	a.mu.Lock()
	entries, upTo := a.pending, a.taken
	a.pending = l.spare[:0]
	a.mu.Unlock()
	l.spare = entries
	if err := l.w.Append(entries); err != nil {
		return err
	}
	if err := l.w.Sync(); err != nil {
		return err
	}
	l.synced = upTo
	return nil
}

// giveUp closes a file that cannot be written, so that the next Sync begins another. REQUIRES: a.file.mu
// is held.
func (a *Aggregator) giveUp() {
	if a.file.w != nil {
		_ = a.file.w.Close()
		a.file.w = nil
	}
	a.mu.Lock()
	a.unlogged, a.pending = true, a.pending[:0]
	a.mu.Unlock()
}

// rotate begins a new file with a snapshot and deletes the old one. REQUIRES: a.file.mu is held.
func (a *Aggregator) rotate() error {
	l := &a.file
	a.mu.Lock()
	snapshot, upTo := a.snapshot(), a.taken
	a.pending, a.unlogged = a.pending[:0], false
	a.mu.Unlock()
	w, err := a.folder().Create(l.number+1, snapshot)
	if err != nil {
		return err
	}
	old, oldNumber := l.w, l.number
	l.w, l.number, l.synced = w, l.number+1, upTo
	l.full = max(leastFull, growthLimit*w.Size())
	if old != nil {
		_ = old.Close() // nothing of it is needed
	}
	if err := a.folder().Remove(oldNumber); err != nil && oldNumber > 0 {
		a.o.Logger.Warn("an old log of aggregation cannot be deleted; the next start tries again", "err", err)
	}
	return nil
}

func (a *Aggregator) folder() segment.Folder {
	return segment.Folder{FS: a.o.FS, Dir: a.o.Dir, Format: format}
}

// snapshot returns the entries of all buffers. REQUIRES: a.mu is held.
func (a *Aggregator) snapshot() (to []byte) {
	// Retired buffers come first, since each name belongs to one buffer at a time.
	for _, retired := range []bool{true, false} {
		for _, b := range a.buffers {
			if b.retired != retired {
				continue
			}
			to = appendBuffer(to, b)
			if retired {
				to = appendID(to, entryRetired, b.id)
			}
			for i := range b.intervals {
				to = appendInterval(to, b, &b.intervals[i])
			}
		}
	}
	return to
}

// size returns the size of the file, for a metric.
func (l *log) size() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w == nil {
		return 0
	}
	return float64(l.w.Size())
}

func (l *log) closeFile() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w == nil {
		return nil
	}
	w := l.w
	l.w = nil
	return w.Close()
}
