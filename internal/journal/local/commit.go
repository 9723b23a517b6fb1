package local

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
)

// group holds the batches that one sync makes durable.
type group struct {
	list  []*pending
	bytes int64
	first uint64
	out   []byte
}

// inFlight is the number of groups between the queue and the end of their Apply: one is written, one is
// applied, and one that is durable waits between them.
const inFlight = 3

const (
	// writeChunk joins small records into one write.
	writeChunk = 1 << 20
	// preallocateBytes are allocated beyond the end of the segment. On ext4 this removes the allocation of
	// blocks from the sync and shortens it, see BenchmarkAppend. Unused bytes stay allocated until the segment
	// is deleted, so it is less than a whole segment. Writing zeros in advance was tried too: it shortens the
	// sync a little more, but writes each byte twice.
	preallocateBytes = 4 << 20
)

// active is the segment that is being written. A nil file means that there is no active segment and the next
// group begins one.
type active struct {
	file      vfs.File
	segment   *segment
	allocated int64
}

// start runs the committer and the applier until the queue is closed.
func (j *Journal) start() {
	j.groups, j.free = make(chan *group, inFlight), make(chan *group, inFlight)
	for range inFlight {
		j.free <- new(group)
	}
	j.workers.Go(func() {
		pprof.Do(context.Background(), pprof.Labels("shale", "journal-commit"), func(context.Context) { j.commitLoop() })
	})
	j.workers.Go(func() {
		pprof.Do(context.Background(), pprof.Labels("shale", "journal-apply"), func(context.Context) { j.applyLoop() })
	})
}

func (j *Journal) commitLoop() {
	defer close(j.groups)
	for {
		g := <-j.free
		if !j.queue.take(g) {
			return
		}
		err := j.commit(g)
		if err == nil {
			j.groups <- g
			continue
		}
		for _, p := range g.list {
			j.finish(p, err)
		}
		j.recycle(g)
	}
}

func (j *Journal) applyLoop() {
	for g := range j.groups {
		for i, p := range g.list {
			j.o.Apply(g.first+uint64(i), p.batch)
			j.finish(p, nil)
		}
		j.recycle(g)
	}
}

// finish returns a batch to its appender and releases its room in the queue. The batch takes memory until
// then.
func (j *Journal) finish(p *pending, err error) {
	j.leave(p.room)
	p.done <- err // p is its appender's from here on
}

func (j *Journal) recycle(g *group) {
	clear(g.list)
	if g.list = g.list[:0]; cap(g.out) > 2*writeChunk {
		g.out = nil
	}
	j.free <- g
}

// commit makes a group durable, which uses up its sequence numbers. On an error it abandons the segment
// instead: it is unknown which bytes are on the disk, and another sync could report a false success. The next
// group begins a segment with the same sequence numbers, which voids the tail of this one.
func (j *Journal) commit(g *group) error {
	// A start copies the last group, so there must be room for it twice.
	if err := j.o.Room(2 * g.bytes); err != nil {
		return err
	}
	g.first = j.durable.Load() + 1
	if j.active.file == nil || j.active.segment.size >= j.o.SegmentBytes {
		if err := j.rotate(); err != nil {
			j.metrics.errors.WithLabelValues("create").Inc()
			return fmt.Errorf("journal %s: begin a segment: %w: %w", j.o.Dir, model.ErrTransient, err)
		}
	}
	j.o.Wrote(g.bytes)
	a := &j.active
	for i, p := range g.list {
		putFrame(p.buf, g.first+uint64(i), i)
	}
	op, err := "write", a.write(g)
	if err == nil {
		begin := time.Now()
		op, err = "sync", a.file.SyncData()
		j.metrics.sync.Observe(time.Since(begin).Seconds())
	}
	if err != nil {
		j.metrics.errors.WithLabelValues(op).Inc()
		err = errors.Join(err, a.file.Close())
		a.file = nil
		return fmt.Errorf("journal %s: %s: %w: %w", j.dir.file(a.segment.name), op, model.ErrTransient, err)
	}
	j.metrics.bytes.Add(float64(g.bytes))
	j.metrics.records.Add(float64(len(g.list)))
	last := g.first + uint64(len(g.list)) - 1
	j.segments.mu.Lock()
	a.segment.last = last
	a.segment.size += g.bytes
	j.segments.mu.Unlock()
	j.durable.Store(last)
	return nil
}

func (a *active) write(g *group) error {
	for a.allocated < a.segment.size+g.bytes {
		// Best effort: a file system without preallocation or without room fails when the bytes are written.
		_ = a.file.Preallocate(a.allocated, preallocateBytes)
		a.allocated += preallocateBytes
	}
	if len(g.list) == 1 {
		return a.writeAll(g.list[0].buf)
	}
	g.out = g.out[:0]
	for _, p := range g.list {
		if len(g.out)+len(p.buf) > writeChunk && len(g.out) > 0 {
			if err := a.writeAll(g.out); err != nil {
				return err
			}
			g.out = g.out[:0]
		}
		if len(p.buf) >= writeChunk {
			if err := a.writeAll(p.buf); err != nil {
				return err
			}
			continue
		}
		g.out = append(g.out, p.buf...)
	}
	return a.writeAll(g.out)
}

func (a *active) writeAll(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := a.file.Write(b)
	return err
}

// rotate begins the segment of the next record.
func (j *Journal) rotate() error {
	next := j.durable.Load() + 1
	return j.begin(header{seed: j.o.Seed, first: next, before: next - 1}, nil, next-1)
}

// begin makes a segment the active one. It holds frames up to the record last, or none. It replaces a segment
// of the same name, which has no valid record besides those in frames.
func (j *Journal) begin(h header, frames []byte, last uint64) error {
	j.segments.mu.Lock()
	list := j.segments.list
	replaces := len(list) > 0 && list[len(list)-1].first == h.first
	if replaces {
		h.before = list[len(list)-1].before
	}
	j.segments.mu.Unlock()

	f, s, err := j.dir.create(h, frames)
	if err != nil {
		return err
	}
	s.last = last
	j.segments.mu.Lock()
	if list = j.segments.list; replaces {
		list[len(list)-1] = s
	} else {
		if len(list) > 0 {
			list[len(list)-1].last = h.before
		}
		j.segments.list = append(list, s)
	}
	j.segments.mu.Unlock()
	old := j.active.file
	j.active = active{file: f, segment: s, allocated: s.size}
	if old != nil {
		// All its bytes are synced, so an error has no consequence.
		_ = old.Close()
	}
	return nil
}
