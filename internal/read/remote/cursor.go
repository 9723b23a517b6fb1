package remote

import (
	"context"

	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/remote/wire"
)

// series walks the series of an answer. Their records are decoded one at a time.
type series struct {
	st         *stream
	own        []model.Matcher // that the holder cannot evaluate
	unlabelled bool

	b       model.Batch
	at      int // index in b of the current series
	next    int // index in b of the next one
	label   int // index in b.Labels of the next label set
	batch   int64
	begun   bool
	key     model.Key
	labels  model.Labels // a copy, because the record may end before the rows of its last series do
	chunks  []byte       // rest of the frame of chunks of this record; text only
	text    bool
	ended   bool
	err     error
	started bool // a record has been read
}

// record reads the next record. It returns false at the end.
func (s *series) record(ctx context.Context) (bool, error) {
	kind, body, err := s.st.next(ctx)
	if err != nil {
		return false, err
	}
	switch kind {
	case wire.Trailer:
		s.ended = true
		return false, s.st.end(body)
	case wire.Record:
	default:
		return false, s.st.damaged("expected a record, got a frame of kind %d", kind)
	}
	if err := journal.DecodeBatch(body, &s.b); err != nil {
		return false, s.st.named(err)
	}
	if len(s.b.Keys) == 0 || s.b.Signal != s.st.req.Signal || s.b.Control.Kind != 0 {
		return false, s.st.damaged("a record of another form: %d series, %s", len(s.b.Keys), s.b.Signal)
	}
	s.at, s.next, s.label, s.started = -1, 0, 0, true
	if more := batchBytes(&s.b) - s.batch; more > 0 {
		if err := s.st.charge(more); err != nil {
			return false, err
		}
		s.batch += more
	}
	if s.text {
		if kind, s.chunks, err = s.st.next(ctx); err != nil {
			return false, err
		}
		if kind != wire.Chunks {
			return false, s.st.damaged("expected chunks, got a frame of kind %d", kind)
		}
	}
	return true, nil
}

// batchBytes returns the memory of a decoded record.
func batchBytes(b *model.Batch) int64 {
	n := cap(b.Keys)*model.KeyBytes + cap(b.Labels.Bytes) + 4*(cap(b.Labels.Series)+cap(b.Labels.Ends))
	for _, f := range model.Families() {
		c := b.Columns(f)
		n += 8*(cap(c.Times)+cap(c.Values)+cap(c.Starts)) + cap(c.Kinds) + cap(c.Bytes) + 4*cap(c.Ends)
	}
	return int64(n)
}

// step moves to the next entry of the records, and reports whether it is of another series than the one
// before.
func (s *series) step(ctx context.Context) (more, fresh bool, err error) {
	for s.next >= len(s.b.Keys) || !s.started {
		if s.ended {
			return false, false, nil
		}
		if more, err := s.record(ctx); !more || err != nil {
			return false, false, err
		}
	}
	s.at = s.next
	s.next++
	k := s.b.Keys[s.at]
	if s.begun && k == s.key {
		return true, false, nil
	}
	if s.begun && k.Compare(s.key) < 0 {
		return false, false, s.st.damaged("series are not in the order of their keys")
	}
	s.begun, s.key = true, k
	return true, true, s.takeLabels()
}

// takeLabels copies the labels of the current series.
func (s *series) takeLabels() error {
	t := &s.b.Labels
	for s.label < t.Len() && int(t.Series[s.label]) < s.at {
		s.label++
	}
	if s.label == t.Len() || int(t.Series[s.label]) != s.at {
		if s.labels = s.labels[:0]; !s.unlabelled {
			return s.st.damaged("series %s comes without labels", s.key)
		}
		return nil
	}
	s.labels = append(s.labels[:0], t.At(s.label)...)
	if err := s.labels.Check(); err != nil {
		return s.st.damaged("series %s: %v", s.key, err)
	}
	return nil
}

// forward moves to the next series that satisfies the matchers.
func (s *series) forward(ctx context.Context) bool {
	for s.err == nil {
		if s.err = ctx.Err(); s.err != nil {
			return false
		}
		more, fresh, err := s.step(ctx)
		if s.err = err; err != nil || !more {
			return false
		}
		if fresh && satisfies(s.labels, s.own) {
			return true
		}
	}
	return false
}

func (s *series) Key() model.Key { return s.key }
func (s *series) Err() error     { return s.err }

func (s *series) Labels() model.Labels {
	if len(s.labels) == 0 {
		return nil
	}
	return s.labels
}

// Close ends the stream.
func (s *series) Close() error {
	if s.st != nil {
		s.st.close()
		s.st = nil
	}
	return nil
}

// cursor is a [model.Cursor] over an answer.
type cursor struct {
	series
	family model.Family
	order  uint64
}

// Next moves to the next series.
func (c *cursor) Next(ctx context.Context) bool { return c.forward(ctx) }

// Order is above those of all blocks.
func (c *cursor) Order() uint64 { return c.order }

// AppendRows appends the rows of the current series, which may go on in further records.
func (c *cursor) AppendRows(ctx context.Context, dst *model.Rows) error {
	for {
		columns := c.b.Columns(c.family)
		dst.AppendRows(&columns.Rows, int(columns.Begin(c.at)), int(columns.End(c.at)))
		if c.next < len(c.b.Keys) || c.ended {
			return nil
		}
		more, err := c.record(ctx)
		if err != nil {
			c.err = err
			return err
		}
		if !more || c.b.Keys[0] != c.key {
			return nil
		}
		c.at, c.next = 0, 1
	}
}
