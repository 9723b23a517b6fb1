package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/graphite/route"
	"github.com/shaledb/shale/internal/write/graphite/segment"
)

// format is the first record of a file.
const format = "shale relay 1"

const (
	// A lot is sealed when it has lotBytes, or lotTime after its first point.
	lotBytes = 1 << 20
	lotTime  = time.Second
	// wakeBytes of pending points are written at once. With mostPending Add writes them itself, and with twice
	// as many, which cannot be written, it drops points.
	wakeBytes   = 256 << 10
	mostPending = 1 << 20
	// retryAfter is how long a failed write is not tried again.
	retryAfter = time.Second
)

// lot is a file of points.
type lot struct {
	number        uint64
	bytes, points int64
}

// Queue has the points that wait for a destination. It is safe for concurrent use.
type Queue struct {
	to     route.Destination
	folder segment.Folder
	most   int64 // bytes
	count  *counters
	log    *slog.Logger
	wake   chan<- struct{} // has pending points written soon
	ripe   time.Duration   // lotTime
	logged sync.Map        // when a kind of message was last logged, in Unix minutes

	how  atomic.Pointer[delivery]
	stop context.CancelFunc
	work sync.WaitGroup
	// changed has room for one: there is something for the sender.
	changed chan struct{}

	// io orders the writes of files. It is taken before mu.
	io     sync.Mutex
	file   *segment.Writer // of the lot that grows; nil: there is none
	spare  []byte          // memory of pending points that have been written
	failed struct {
		at  time.Time
		err error
	}

	mu sync.Mutex
	// pending is what is in no file yet.
	pending       []byte
	pendingPoints int64
	// writing is how many points are being written, and writingBytes their bytes: they are neither pending nor
	// durable.
	writing, writingBytes int64

	began       time.Time // when the first point of the lot that grows came; zero: it has none
	grows       lot
	next        uint64 // number
	ready       []lot  // sealed, the oldest first
	readyBytes  int64
	readyPoints int64
	closed      bool
}

// folderName returns the name of the folder of a destination, none of whose texts has a plus sign.
func folderName(d route.Destination) string { return strings.ReplaceAll(d.String(), ":", "+") }

// open reads what waits.
func (q *Queue) open() error {
	numbers, err := q.folder.Open()
	if err != nil {
		return err
	}
	for _, n := range numbers {
		l := lot{number: n}
		cut, err := q.folder.Read(n, func(record []byte) error {
			points, err := countPoints(record)
			l.points += int64(points)
			return err
		})
		switch {
		case errors.Is(err, model.ErrCorrupt):
			q.setAside(n, err)
			continue
		case err != nil:
			return err
		case cut != nil:
			q.log.Info("the end of a batch of relayed points is cut off, as after a kill", "destination", q.to.String(), "file", q.folder.Path(n), "err", cut)
		}
		if l.bytes, err = q.folder.Size(n); err != nil {
			return err
		}
		q.ready = append(q.ready, l)
		q.readyBytes, q.readyPoints = q.readyBytes+l.bytes, q.readyPoints+l.points
	}
	q.next = 1
	if len(numbers) > 0 {
		q.next = numbers[len(numbers)-1] + 1
	}
	q.gauge()
	return nil
}

// setAside renames a lot that cannot be read, so that the bytes are kept and others are sent.
func (q *Queue) setAside(number uint64, why error) {
	path := q.folder.Path(number)
	err := q.folder.FS.Rename(path, path+".damaged")
	q.log.Error("a lot of relayed points is damaged and set aside: its points will not be sent", "destination", q.to.String(), "file", path+".damaged", "err", errors.Join(why, err))
}

// Add takes a point. It keeps nothing of the path. The time is in Unix seconds.
func (q *Queue) Add(path []byte, t int64, v float64) {
	q.count.points.Inc()
	need := len(path) + 24 // at most
	q.mu.Lock()
	reason := q.refuses(int64(need))
	first := reason == "" && q.began.IsZero()
	if reason == "" {
		q.pending = appendPoint(q.pending, point{path, t, v})
		q.pendingPoints++
	}
	if first {
		q.began = time.Now()
	}
	waiting := len(q.pending)
	q.mu.Unlock()
	if reason != "" {
		q.drop(reason, 1)
		return
	}
	if first {
		signal(q.changed)
	}
	if waiting >= wakeBytes {
		signal(q.wake)
	}
	if waiting >= mostPending {
		_ = q.Sync() // it logs its errors
	}
}

// refuses returns the reason to drop a point, or an empty text. REQUIRES: q.mu is held.
func (q *Queue) refuses(need int64) string {
	switch {
	case q.closed:
		return removed
	case q.readyBytes+q.grows.bytes+q.writingBytes+int64(len(q.pending))+need > q.most:
		return full
	case len(q.pending) >= 2*mostPending:
		return disk
	}
	return ""
}

// drop counts points that will not be sent, and logs it at most once a minute.
func (q *Queue) drop(reason string, points int) {
	q.count.dropped[reason].Add(float64(points))
	if !q.mayLog(reason) {
		return
	}
	switch reason {
	case full:
		q.log.Error("the queue for a carbon is full: points for it are dropped until it accepts some; repair the carbon, or raise graphite.relay-queue",
			"destination", q.to.String(), "bytes", q.most, "setting", "graphite.relay-queue")
	case unsendable:
		q.log.Warn("points cannot be sent over the protocol of the destination: a path with white space or a very long one, or a time before 1970",
			"destination", q.to.String(), "protocol", string(q.how.Load().protocol), "points", points)
	default:
		q.log.Error("points for a carbon are dropped", "destination", q.to.String(), "reason", reason, "points", points)
	}
}

// mayLog reports whether a kind of message was not logged in this minute.
func (q *Queue) mayLog(kind string) bool {
	now := time.Now().Unix() / 60
	last, known := q.logged.Swap(kind, now)
	return !known || last != now
}

// Sync makes durable what Add has taken.
func (q *Queue) Sync() error {
	q.io.Lock()
	defer q.io.Unlock()
	return q.flush()
}

// flush writes what is pending. REQUIRES: q.io is held.
func (q *Queue) flush() error {
	q.mu.Lock()
	points := q.pendingPoints
	if points > 0 && q.failed.err != nil && time.Since(q.failed.at) < retryAfter {
		q.mu.Unlock()
		return q.failed.err
	}
	if points == 0 {
		q.mu.Unlock()
		return nil
	}
	entries := q.pending
	q.pending, q.pendingPoints, q.writing, q.writingBytes = q.spare[:0], 0, points, int64(len(entries))
	q.mu.Unlock()
	err := q.write(entries, points)
	q.mu.Lock()
	q.writing, q.writingBytes = 0, 0
	if err != nil {
		entries = append(entries, q.pending...)
		q.pending, q.pendingPoints, entries = entries, q.pendingPoints+points, q.pending
	}
	q.spare = entries[:0]
	q.mu.Unlock()
	q.failed.at, q.failed.err = time.Now(), err
	if err == nil {
		q.gauge()
		return nil
	}
	err = fmt.Errorf("the queue of relayed points in %s cannot be written: %w", q.folder.Dir, err)
	if q.mayLog("write") {
		q.log.Error("cannot write the queue for a carbon: its points are only in memory for now", "destination", q.to.String(), "err", err)
	}
	return err
}

// write appends points to the lot that grows. REQUIRES: q.io is held.
func (q *Queue) write(entries []byte, points int64) error {
	if q.file != nil && q.grows.bytes+int64(len(entries)) > lotBytes {
		q.seal()
	}
	if q.file == nil {
		w, err := q.folder.Create(q.next, entries)
		if err != nil {
			return err
		}
		q.mu.Lock()
		q.file, q.grows = w, lot{q.next, w.Size(), points}
		q.next++
		q.mu.Unlock()
		return nil
	}
	err := q.file.Append(entries)
	if err == nil {
		err = q.file.Sync()
	}
	if err != nil {
		q.seal() // what it had before is whole
		return err
	}
	q.mu.Lock()
	q.grows.bytes, q.grows.points = q.file.Size(), q.grows.points+points
	q.mu.Unlock()
	return nil
}

// seal ends the lot that grows. REQUIRES: q.io is held.
func (q *Queue) seal() {
	if q.file == nil {
		return
	}
	_ = q.file.Close() // what counts is synced
	q.mu.Lock()
	q.ready = append(q.ready, q.grows)
	q.readyBytes, q.readyPoints = q.readyBytes+q.grows.bytes, q.readyPoints+q.grows.points
	q.file, q.grows, q.began = nil, lot{}, time.Time{}
	if q.pendingPoints+q.writing > 0 { // they go into the next lot
		q.began = time.Now()
	}
	q.mu.Unlock()
	signal(q.changed)
}

// first waits for the oldest lot. It returns false if ctx ends before.
func (q *Queue) first(ctx context.Context) (l lot, ok bool) {
	for ctx.Err() == nil {
		q.mu.Lock()
		if len(q.ready) > 0 {
			l := q.ready[0]
			q.mu.Unlock()
			return l, true
		}
		wait := time.Hour
		if !q.began.IsZero() {
			wait = q.ripe - time.Since(q.began)
		}
		q.mu.Unlock()
		if wait <= 0 {
			q.io.Lock()
			if q.flush() != nil {
				wait = retryAfter
			}
			q.seal()
			q.io.Unlock()
		}
		if wait <= 0 {
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-q.changed:
		case <-timer.C:
		}
		timer.Stop()
	}
	return lot{}, false
}

// read returns the points of a lot.
func (q *Queue) read(l lot) (points []byte, err error) {
	_, err = q.folder.Read(l.number, func(record []byte) error {
		points = append(points, record...)
		return nil
	})
	return points, err
}

// settle forgets the oldest lot, which was sent or cannot be read.
func (q *Queue) settle(l lot, remove bool) {
	if remove {
		if err := q.folder.Remove(l.number); err != nil {
			q.log.Warn("a lot that was sent cannot be deleted; it is sent again after the next start", "file", q.folder.Path(l.number), "err", err)
		}
	}
	q.mu.Lock()
	q.ready = append(q.ready[:0], q.ready[1:]...)
	q.readyBytes, q.readyPoints = q.readyBytes-l.bytes, q.readyPoints-l.points
	q.mu.Unlock()
	q.gauge()
}

// gauge sets the metrics of what waits.
func (q *Queue) gauge() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.count.queuedPoints.Set(float64(q.readyPoints + q.grows.points))
	q.count.queuedBytes.Set(float64(q.readyBytes + q.grows.bytes))
}

// close ends the sender, makes durable what waits, and takes no further points.
func (q *Queue) close() error {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.stop()
	q.work.Wait()
	q.io.Lock()
	defer q.io.Unlock()
	q.failed.err = nil // one more attempt
	err := q.flush()
	q.seal()
	return err
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
