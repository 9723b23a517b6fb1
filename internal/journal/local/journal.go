package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
)

// Options build a Journal.
type Options struct {
	FS vfs.FS
	// Dir is the folder of the segments. Its parent exists.
	Dir string
	// Seed is written into every segment; segments with another one are refused.
	Seed model.KeySeed
	// SegmentBytes is the size after which a new segment begins; 0 means 64 MiB.
	SegmentBytes int64
	// MaxQueueBytes bounds the batches in the journal's hands, from before they are encoded until they are applied, by
	// the size of their records; 0 means 16 MiB. A record that is larger waits until it is alone.
	MaxQueueBytes int64
	// Apply is called with every durable batch, in the order of seq, always by one goroutine. nil does nothing.
	Apply      func(seq uint64, b *model.Batch)
	Registerer prometheus.Registerer
	// Logger is told of what the start drops; nil: nobody is.
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = 64 << 20
	}
	if o.MaxQueueBytes <= 0 {
		o.MaxQueueBytes = 16 << 20
	}
	if o.Apply == nil {
		o.Apply = func(uint64, *model.Batch) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Journal is the log of one process. Its life is Open, Replay, Start, then Append and Truncate by any number of
// goroutines, then Close. Two journals must not use one folder at one time; the lock on the data folder sees to that.
//
// Locks: truncate, then segments.mu. queue.mu is held with no other. Neither queue.mu nor segments.mu is held while a file
// is touched.
type Journal struct {
	o       Options
	dir     folder
	metrics *metrics

	// room holds as many units as bytes may be on their way. It is first come, first served. held is what is taken of it.
	room     *semaphore.Weighted
	held     atomic.Int64
	pendings sync.Pool
	queue    queue
	groups   chan *group // from the committer to the applier
	free     chan *group // and back
	workers  sync.WaitGroup
	started  bool

	// tail is what Open found and Start uses.
	tail tail
	// Only the committer uses active, once the journal has been started.
	active active
	// durable is the last sequence number that is on the disk.
	durable atomic.Uint64

	// truncate is held by the one truncation that goes on.
	truncate sync.Mutex
	segments struct {
		mu   sync.Mutex
		list []*segment // ascending; the last one is being written
	}
}

// Open reads which segments there are, and where the newest one ends. It changes no file. Errors: class invalid for
// segments of another seed or a later version, corrupt for segments that do not fit together or are damaged, transient
// if the disk does not read.
func Open(o Options) (*Journal, error) {
	o.setDefaults()
	j := &Journal{o: o, dir: folder{fs: o.FS, path: o.Dir}, room: semaphore.NewWeighted(o.MaxQueueBytes)}
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
			return nil, fmt.Errorf("journal %s: %w: it belongs to an installation with another key seed (%016x, not %016x)",
				j.dir.file(newest.name), model.ErrInvalid, uint64(newest.seed), uint64(o.Seed))
		}
		t, err := j.dir.findEnd(newest)
		if err != nil {
			return nil, err
		}
		j.tail = t
		j.durable.Store(newest.last)
	}
	j.metrics = newMetrics(o.Registerer, j)
	j.reportTail()
	return j, nil
}

// reportTail says what of the newest segment does not count. A crash leaves such an end, of records that nobody was told
// are durable; but nothing in the file can tell it from damage of the last group, so it is not passed over in silence.
func (j *Journal) reportTail() {
	if j.tail.torn == nil {
		return
	}
	newest := j.segments.list[len(j.segments.list)-1]
	dropped := newest.size - j.tail.end
	j.metrics.dropped.Add(float64(dropped))
	j.o.Logger.Warn("the end of the journal is torn and is dropped, as after a crash; what was acknowledged is not in it, unless the disk has damaged the last writes",
		"file", j.dir.file(newest.name), "offset", j.tail.end, "bytes", dropped, "last_record", newest.last, "why", j.tail.torn)
}

// Replay gives every record with a sequence number of at least from to fn, in order, with no gap. The batch is valid
// during the call. It is for the time between Open and Start. With from = 0 it begins at the first record that there
// is; otherwise a journal that begins later than from, or lacks records behind it, is an error of class corrupt.
func (j *Journal) Replay(ctx context.Context, from uint64, fn func(seq uint64, b *model.Batch) error) error {
	return j.dir.replay(ctx, j.segments.list, from, func(r *reader, b *model.Batch) error { return fn(r.frame.seq, b) })
}

func (d folder) replay(ctx context.Context, segs []*segment, from uint64, fn func(r *reader, b *model.Batch) error) error {
	var b model.Batch
	next := from // the sequence number that must come; 0: any
	for _, s := range segs {
		if next > 0 && s.last < next {
			continue
		}
		// With from = 0, what is missing was in parts when the segment began: its header says so, and list has checked.
		if from > 0 && s.first > next {
			return fmt.Errorf("journal %s: %w: the records %d to %d are missing before it", d.file(s.name), model.ErrCorrupt, next, s.first-1)
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
