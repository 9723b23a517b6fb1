package loki

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
)

// The bounds of the queue to a client. When it is full, the engine waits, and drops lines once its own buffer
// is full.
const (
	maxFrames = 4
	// maxFrameBytes is the size from which a frame takes no further line.
	maxFrameBytes = 1 << 20
)

// frameWriter turns lines into frames.
type frameWriter struct {
	api.Body // only the buffer and the methods that write into it
	tail     *tail
	labels   model.Labels // of the stream that is being written
	lines    int
	dropped  []logql.Dropped
	sorted   []tailed
}

// follow runs the query and queues its lines.
func (t *tail) follow(ctx context.Context) error {
	f := frameWriter{tail: t}
	return t.h.o.Engine.Tail(ctx, t.query, func(b *logql.Batch) error {
		f.dropped = b.Dropped
		for _, l := range f.byTime(b) {
			if len(f.Buf) >= maxFrameBytes {
				if err := f.finish(ctx); err != nil {
					return err
				}
			}
			f.add(l.labels, l.entry)
		}
		return f.finish(ctx)
	})
}

// tailed is a line with the labels of its stream.
type tailed struct {
	labels model.Labels
	entry  *logql.Entry
}

// byTime returns the lines of a batch across its streams, older ones first: clients show them in the order of
// arrival.
func (f *frameWriter) byTime(b *logql.Batch) []tailed {
	f.sorted = f.sorted[:0]
	for i := range b.Streams {
		s := &b.Streams[i]
		for j := range s.Entries {
			f.sorted = append(f.sorted, tailed{s.Labels, &s.Entries[j]})
		}
	}
	slices.SortStableFunc(f.sorted, func(a, b tailed) int { return cmp.Compare(a.entry.Time, b.entry.Time) })
	return f.sorted
}

// add adds a line to the frame, and to the last stream of the frame if that is its own.
func (f *frameWriter) add(l model.Labels, e *logql.Entry) {
	switch {
	case f.lines == 0:
		f.Raw(`{"streams":[`)
		f.beginStream(l)
	case !bytes.Equal(f.labels, l):
		f.Raw("]},")
		f.beginStream(l)
	default:
		f.Raw(",")
	}
	f.lines++
	if f.tail.legacy {
		writeLegacyEntry(&f.Body, e, true)
	} else {
		writeEntry(&f.Body, e, f.tail.form)
	}
}

func (f *frameWriter) beginStream(l model.Labels) {
	f.labels = append(f.labels[:0], l...)
	if f.tail.legacy {
		beginLegacyStream(&f.Body, l)
	} else {
		beginStream(&f.Body, l)
	}
}

// finish queues the frame, unless it is empty. It waits for room in the queue.
func (f *frameWriter) finish(ctx context.Context) error {
	switch {
	case f.lines > 0:
		f.Raw("]}]")
	case len(f.dropped) > 0:
		f.Raw(`{"streams":[]`)
	default:
		return nil
	}
	if f.tail.legacy {
		f.legacyDropped()
	} else {
		f.droppedEntries()
		writeFlags(&f.Body, f.tail.flags)
	}
	f.Raw("}")
	out := bytes.Clone(f.Buf)
	f.Buf, f.lines, f.dropped = f.Buf[:0], 0, nil
	if cap(f.Buf) > 2*maxFrameBytes {
		f.Buf = nil
	}
	if err := f.tail.query.Quota.TakeBytes(int64(len(out))); err != nil {
		return err
	}
	select {
	case f.tail.frames <- out:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// droppedEntries writes the lines dropped since the last frame.
func (f *frameWriter) droppedEntries() {
	separator := `,"dropped_entries":[`
	for _, d := range f.dropped {
		f.Raw(separator)
		separator = ","
		f.Raw(`{"timestamp":"`)
		f.Buf = strconv.AppendInt(f.Buf, d.Time, 10)
		f.Raw(`","labels":`)
		writeLabels(&f.Body, d.Labels)
		f.Raw("}")
	}
	if len(f.dropped) > 0 {
		f.Raw("]")
	}
}

// legacyDropped writes the dropped lines in the old form.
func (f *frameWriter) legacyDropped() {
	if len(f.dropped) == 0 {
		f.Raw(`,"dropped_entries":null`)
		return
	}
	separator := `,"dropped_entries":[`
	for _, d := range f.dropped {
		f.Raw(separator)
		separator = ","
		f.Raw(`{"Timestamp":"`)
		f.Buf = time.Unix(0, d.Time).UTC().AppendFormat(f.Buf, time.RFC3339Nano)
		f.Raw(`","Labels":`)
		f.Str(d.Labels.String())
		f.Raw("}")
	}
	f.Raw("]")
}
