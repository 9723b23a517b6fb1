package record

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/cache/ledger"
	"github.com/shaledb/shale/internal/model"
)

// waiting bounds the touches that wait to be written.
const waiting = 1 << 14

// Recorder writes one trace at a time.
type Recorder struct {
	l    *ledger.Ledger
	salt [32]byte
	now  func() int64

	busy sync.Mutex // is held while a trace is written
	stop chan struct{}
	once sync.Once
}

// New returns a recorder. The time is in Unix nanoseconds.
func New(l *ledger.Ledger, now func() int64) *Recorder {
	r := &Recorder{l: l, now: now, stop: make(chan struct{})}
	_, _ = rand.Read(r.salt[:]) // never fails
	return r
}

// Close ends a trace that is being written, and refuses others.
func (r *Recorder) Close() { r.once.Do(func() { close(r.stop) }) }

// trace is a trace that is being written.
type trace struct {
	touches chan timed
	now     func() int64
	dropped atomic.Int64
}

type timed struct {
	ledger.Touch
	at int64
}

// Wants is [ledger.Watcher.Wants].
func (t *trace) Wants(uint64, bool) bool { return true }

// Note is [ledger.Watcher.Note].
func (t *trace) Note(touch ledger.Touch) {
	if touch.Local { // never comes from the bucket
		return
	}
	select {
	case t.touches <- timed{touch, t.now()}:
	default:
		t.dropped.Add(1)
	}
}

// Write writes a CSV file, until the context ends or the file has so many bytes. Flush is called after each
// second with touches. It returns the number of touches that came too fast.
func (r *Recorder) Write(ctx context.Context, to io.Writer, maxBytes int64, flush func()) (dropped int64, err error) {
	if !r.busy.TryLock() {
		return 0, fmt.Errorf("%w: another trace is being recorded; wait until it has ended", model.ErrTransient)
	}
	defer r.busy.Unlock()
	t := &trace{touches: make(chan timed, waiting), now: r.now}
	r.l.Watch(t)
	defer r.l.Unwatch(t)
	out := bufio.NewWriterSize(to, 64<<10)
	written, err := out.WriteString("time,key,size,query,age,kind\n")
	left := maxBytes - int64(written)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var line []byte
	stored, last := ratio{bytes: 1, stored: usualShare}, int64(0)
	for err == nil && left > 0 {
		select {
		case touch := <-t.touches:
			touch.at = max(touch.at, last) // touches of several goroutines may overtake each other
			last = touch.at
			line = r.line(line[:0], &touch, &stored)
			if left -= int64(len(line)); left >= 0 {
				_, err = out.Write(line)
			}
		case <-tick.C:
			err = out.Flush()
			flush()
		case <-ctx.Done():
			return t.dropped.Load(), out.Flush()
		case <-r.stop:
			return t.dropped.Load(), out.Flush()
		}
	}
	if err == nil {
		err = out.Flush()
	}
	return t.dropped.Load(), err
}

// usualShare is the share of the bytes in memory that a page takes in the bucket, before any is known.
const usualShare = 0.3

// ratio is how much smaller pages are in the bucket than in memory. The size of a page that was found in
// memory is estimated by it.
type ratio struct{ bytes, stored float64 }

// line appends the row of a touch.
func (r *Recorder) line(to []byte, t *timed, stored *ratio) []byte {
	size := float64(t.Stored)
	if t.Stored > 0 {
		stored.bytes, stored.stored = stored.bytes+float64(t.Bytes), stored.stored+size
	} else {
		size = float64(t.Bytes) * stored.stored / stored.bytes
	}
	to = strconv.AppendFloat(to, float64(t.at)/1e9, 'f', 3, 64)
	to = append(to, ',')
	to = strconv.AppendUint(to, r.hash(t.Key), 16)
	to = append(to, ',')
	to = strconv.AppendInt(to, max(int64(size), 1), 10)
	if t.Fresh {
		return append(to, ",,,write\n"...)
	}
	to = append(to, ',')
	to = strconv.AppendUint(to, r.hash(t.Query), 16)
	to = append(to, ',')
	to = strconv.AppendInt(to, int64(t.Age), 10)
	return append(to, ",read\n"...)
}

// hash hides a number.
func (r *Recorder) hash(n uint64) uint64 {
	var b [40]byte
	copy(b[:], r.salt[:])
	binary.LittleEndian.PutUint64(b[32:], n)
	sum := sha256.Sum256(b[:])
	return binary.LittleEndian.Uint64(sum[:])
}
