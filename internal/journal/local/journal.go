package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
)

// Options configure a Journal.
type Options struct {
	FS vfs.FS
	// Dir is the folder of the segments. Its parent exists.
	Dir string
	// Seed is written into every segment; segments with another one are refused.
	Seed model.KeySeed
	// Covered is the last record whose rows and labels are in durable parts. Damage of records up to it is
	// logged and skipped, since it loses nothing.
	Covered uint64
	// SegmentBytes is the size after which a new segment begins; 0 means 64 MiB.
	SegmentBytes int64
	// MaxQueueBytes bounds the records in memory, from before they are encoded until they are applied; 0 means
	// 16 MiB. A larger record waits until it is the only one.
	MaxQueueBytes int64
	// Room returns an error of class transient unless the disk has room for that many bytes, and Wrote is told
	// the bytes that were written. nil: there is room.
	Room  func(bytes int64) error
	Wrote func(bytes int64)
	// Apply is called with every durable batch, in the order of seq, always by one goroutine. nil does nothing.
	Apply      func(seq uint64, b *model.Batch)
	Registerer prometheus.Registerer
	// Logger reports what the start drops; nil discards it.
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = 64 << 20
	}
	if o.MaxQueueBytes <= 0 {
		o.MaxQueueBytes = 16 << 20
	}
	if o.Room == nil {
		o.Room = func(int64) error { return nil }
	}
	if o.Wrote == nil {
		o.Wrote = func(int64) {}
	}
	if o.Apply == nil {
		o.Apply = func(uint64, *model.Batch) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Journal is the log of one process. Its life is Open, Replay, Start, then Append and Truncate by any number
// of goroutines, then Close. Two journals must not use one folder at the same time; the lock on the data
// folder prevents it.
//
// Locks: truncate, then segments.mu. No other lock is held with queue.mu. Neither queue.mu nor segments.mu is
// held during file operations.
type Journal struct {
	o       Options
	dir     folder
	metrics *metrics

	// room has one unit for each byte that records may take, and is first come, first served. held counts the
	// units in use.
	room     *semaphore.Weighted
	held     atomic.Int64
	pendings sync.Pool
	queue    queue
	groups   chan *group // from the committer to the applier
	free     chan *group // and back
	workers  sync.WaitGroup
	started  bool

	// tail is what Open found, for Start, and skipped the damage that Open and Replay skipped.
	tail    tail
	skipped []Damage
	// After Start only the committer uses active.
	active active
	// durable is the last sequence number that is on the disk.
	durable atomic.Uint64

	// truncate is held during a truncation.
	truncate sync.Mutex
	segments struct {
		mu   sync.Mutex
		list []*segment // ascending; the last one is being written
	}
}

// reportDamage logs damage that loses nothing, once.
func (j *Journal) reportDamage(d Damage) {
	if slices.ContainsFunc(j.skipped, func(s Damage) bool { return s.File == d.File && s.Offset == d.Offset }) {
		return
	}
	j.skipped = append(j.skipped, d)
	j.metrics.damaged.Add(float64(d.Bytes))
	j.o.Logger.Warn("skipping damaged records of the journal; nothing is lost, since local parts hold all of their rows and labels",
		"file", d.File, "offset", d.Offset, "bytes", d.Bytes, "first_record", d.First, "last_record", d.Last, "parts_cover", j.o.Covered, "why", d.Why)
}

// Open lists the segments and finds the end of the newest one. It changes no file. Error classes: invalid for
// segments with another seed or a later version, corrupt for segments that are damaged or do not follow each
// other, transient for read errors.
func Open(o Options) (*Journal, error) {
	o.setDefaults()
	j := &Journal{o: o, room: semaphore.NewWeighted(o.MaxQueueBytes)}
	j.dir = folder{fs: o.FS, path: o.Dir, covered: o.Covered, skipped: j.reportDamage}
	j.metrics = newMetrics(o.Registerer, j)
	j.pendings.New = func() any { return &pending{done: make(chan error, 1)} }
	j.queue.init()
	_, err := o.FS.Stat(o.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("journal %s: %w: %w", o.Dir, model.ErrTransient, err)
	}
	if err == nil {
		if j.segments.list, err = j.dir.list(); err != nil {
			return nil, err
		}
	}
	if segs := j.segments.list; len(segs) > 0 {
		newest := segs[len(segs)-1]
		if newest.seed != o.Seed {
			return nil, fmt.Errorf("journal %s: %w: segment belongs to an installation with another key seed (%016x, expected %016x)",
				j.dir.file(newest.name), model.ErrInvalid, uint64(newest.seed), uint64(o.Seed))
		}
		t, err := j.dir.findEnd(newest)
		if err != nil {
			return nil, err
		}
		j.tail = t
		j.durable.Store(newest.last)
	}
	j.reportTail()
	return j, nil
}

// reportTail logs which bytes at the end of the newest segment are ignored. A crash leaves such a tail of
// unacknowledged records. Damage of the last group looks the same, so it is logged.
func (j *Journal) reportTail() {
	if j.tail.torn == nil {
		return
	}
	newest := j.segments.list[len(j.segments.list)-1]
	dropped := newest.size - j.tail.end
	j.metrics.dropped.Add(float64(dropped))
	j.o.Logger.Warn("dropping the torn end of the journal, as is normal after a crash; it holds no acknowledged data, unless the disk has damaged the last writes",
		"file", j.dir.file(newest.name), "offset", j.tail.end, "bytes", dropped, "last_record", newest.last, "why", j.tail.torn)
}

// Replay gives every record with a sequence number of at least from to fn, in order, with no gap. The batch
// is valid during the call. Replay is called between Open and Start. With from = 0 it begins at the first
// record. Otherwise it is an error of class corrupt if the journal begins after from or lacks later records.
func (j *Journal) Replay(ctx context.Context, from uint64, fn func(seq uint64, b *model.Batch) error) error {
	return j.dir.replay(ctx, j.segments.list, from, func(r *reader, b *model.Batch) error { return fn(r.frame.seq, b) })
}

func (d folder) replay(ctx context.Context, segs []*segment, from uint64, fn func(r *reader, b *model.Batch) error) error {
	var b model.Batch
	next := from // the expected sequence number; 0: any
	for _, s := range segs {
		if next > 0 && s.last < next {
			continue
		}
		// With from = 0, missing records were in parts when the segment began: its header says so, and list has
		// checked it.
		if from > 0 && s.first > next {
			return fmt.Errorf("journal %s: %w: records %d to %d before the segment are missing", d.file(s.name), model.ErrCorrupt, next, s.first-1)
		}
		if err := d.replaySegment(ctx, s, next, &b, fn); err != nil {
			return err
		}
		if s.last >= s.first {
			next = s.last + 1
		}
	}
	return nil
}

func (d folder) replaySegment(ctx context.Context, s *segment, from uint64, b *model.Batch, fn func(r *reader, b *model.Batch) error) error {
	r, err := d.read(s)
	if err != nil {
		return err
	}
	defer r.close()
	for r.seq <= s.last {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("journal %s: replay: %w: %w", r.path, model.ErrClosed, err)
		}
		at := r.off
		if err := r.next(); err != nil {
			skipped, skipErr := d.skipCovered(r, err)
			if skipErr != nil {
				return skipErr
			}
			if skipped {
				continue
			}
			return r.corrupt(err)
		}
		if r.frame.seq < from {
			continue
		}
		if err := journal.DecodeBatch(r.record, b); err != nil {
			return fmt.Errorf("journal %s: offset %d: record %d: %w", r.path, at, r.frame.seq, err)
		}
		if err := fn(r, b); err != nil {
			return err
		}
	}
	return nil
}

// LastSeq returns the sequence number of the last durable record, or 0.
func (j *Journal) LastSeq() uint64 { return j.durable.Load() }

// Bytes returns the size of all segments.
func (j *Journal) Bytes() int64 {
	j.segments.mu.Lock()
	defer j.segments.mu.Unlock()
	n := int64(0)
	for _, s := range j.segments.list {
		n += s.size
	}
	return n
}

// Held returns the bytes of records in memory, from before they are encoded until they are applied.
func (j *Journal) Held() int64 { return j.held.Load() }
