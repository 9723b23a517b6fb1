package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// Start makes the journal ready for Append. The next record gets the sequence number next, or the one after
// the last record found if that is larger. If next is larger, everything before it is in durable parts.
//
// The journal never appends to a segment of an earlier run. The last group of the newest one can be read, but
// may be in the page cache only: after a failed sync the pages look clean. So the new segment begins with a
// copy of that group, and the old segment ends before it.
func (j *Journal) Start(next uint64) error {
	if j.started {
		return fmt.Errorf("journal %s: %w: already started", j.o.Dir, model.ErrInvalid)
	}
	wrap := func(err error) error {
		return fmt.Errorf("journal %s: start: %w: %w", j.o.Dir, model.ErrTransient, err)
	}
	if err := j.o.FS.MkdirAll(j.o.Dir, 0o755); err != nil {
		return wrap(err)
	}
	if err := syncDir(j.o.FS, j.o.FS.PathDir(j.o.Dir)); err != nil {
		return wrap(err)
	}
	if err := j.removeUnfinished(); err != nil {
		return wrap(err)
	}
	var frames []byte
	h, last := header{seed: j.o.Seed, first: max(next, 1)}, j.LastSeq()
	h.before = h.first - 1
	if len(j.segments.list) > 0 {
		h.before = j.tail.durable
		if h.first <= last+1 {
			h.first = j.tail.durable + 1
			var err error
			if frames, err = j.lastGroup(); err != nil {
				return wrap(err)
			}
		} else {
			last = h.first - 1
		}
	} else {
		last = h.before
	}
	if err := j.begin(h, frames, last); err != nil {
		return wrap(err)
	}
	j.durable.Store(last)
	j.started = true
	// In this order: the committer ends when it finds the queue closed.
	j.queue.setOpen(true)
	j.start()
	return nil
}

// lastGroup reads the frames of the last group of the newest segment.
func (j *Journal) lastGroup() ([]byte, error) {
	newest := j.segments.list[len(j.segments.list)-1]
	f, err := j.o.FS.Open(j.dir.file(newest.name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	frames := make([]byte, j.tail.end-j.tail.group)
	if _, err := io.ReadFull(io.NewSectionReader(f, j.tail.group, int64(len(frames))), frames); err != nil {
		return nil, err
	}
	return frames, nil
}

// removeUnfinished removes segments whose creation a crash interrupted.
func (j *Journal) removeUnfinished() error {
	names, err := j.o.FS.List(j.o.Dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, unfinishedSuffix) {
			if err := j.o.FS.Remove(j.dir.file(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close writes the waiting batches, waits until they are applied, and closes the files. It may be called more
// than once.
func (j *Journal) Close() error {
	j.queue.setOpen(false)
	j.workers.Wait()
	f := j.active.file
	if j.active.file = nil; f == nil {
		return nil
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("journal %s: close: %w: %w", j.o.Dir, model.ErrTransient, err)
	}
	return nil
}

// Truncate deletes the segments of which every record has a sequence number of at most covered, oldest first.
// The newest segment stays, so that the sequence numbers go on after a restart. It may be called at any time
// after Start.
func (j *Journal) Truncate(covered uint64) error {
	j.truncate.Lock()
	defer j.truncate.Unlock()
	for {
		j.segments.mu.Lock()
		list := j.segments.list
		if len(list) < 2 || list[0].last > covered {
			j.segments.mu.Unlock()
			return nil
		}
		name := list[0].name
		j.segments.mu.Unlock()

		// Each removal is made durable before the next one: after a crash, an older segment must not exist
		// without a later one, since the gap would look like damage.
		err := j.o.FS.Remove(j.dir.file(name))
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = j.dir.sync()
		}
		if err != nil {
			j.metrics.errors.WithLabelValues("remove").Inc()
			return fmt.Errorf("journal %s: remove: %w: %w", j.dir.file(name), model.ErrTransient, err)
		}
		j.segments.mu.Lock()
		j.segments.list = j.segments.list[1:]
		j.segments.mu.Unlock()
	}
}
