package peer

import (
	"context"

	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/remote/wire"
)

// selectSeries streams series with their rows, as records of about wire.TargetBytes.
func (h *Handler) selectSeries(ctx context.Context, c *call) error {
	set, err := c.querier.Select(ctx, c.req)
	if err != nil {
		return err
	}
	defer set.Close()
	if err := c.head(""); err != nil {
		return err
	}
	out := records{c: c, family: max(c.req.Family, model.Samples)}
	out.b.Tenant, out.b.Signal = c.of.Tenant, c.of.Signal
	var rows model.Rows
	for set.Next(ctx) {
		rows.Reset()
		if !c.req.LabelsOnly && c.req.Signal == model.Metrics {
			if err := set.AppendRows(ctx, &rows); err != nil {
				return err
			}
		}
		if err := out.add(set.Key(), set.Labels(), &rows); err != nil {
			return err
		}
		_ = c.req.Quota.TakeBytes(-set.Charged()) // giving back never fails
	}
	if err := set.Err(); err != nil {
		return err
	}
	if err := out.flush(); err != nil {
		return err
	}
	return c.trailer()
}

// records gathers series into records.
type records struct {
	c      *call
	family model.Family
	b      model.Batch
	bytes  int
	frame  []byte
}

// seriesBytes estimates what a series takes in a record apart from labels and rows.
const seriesBytes = 24

// rowBytes is what a float takes.
const rowBytes = 16

// add adds a series. If its rows take more than a record, the records after the first have its key again,
// without labels.
func (r *records) add(k model.Key, l model.Labels, rows *model.Rows) error {
	if len(l) > 0 {
		r.b.Labels.Append(uint32(len(r.b.Keys)), l)
	}
	r.bytes += seriesBytes + len(l)
	columns := r.b.Columns(r.family)
	from := 0
	for i := range rows.Len() {
		r.bytes += rowBytes
		if rows.Kind(i) != model.KindFloat {
			r.bytes += len(rows.Blob(i))
		}
		if r.bytes < wire.TargetBytes || i+1 == rows.Len() {
			continue
		}
		columns.AppendRows(rows, from, i+1)
		r.b.EndSeries(k)
		if err := r.flush(); err != nil {
			return err
		}
		from = i + 1
	}
	columns.AppendRows(rows, from, rows.Len())
	r.b.EndSeries(k)
	if r.bytes >= wire.TargetBytes {
		return r.flush()
	}
	return nil
}

func (r *records) flush() error {
	if len(r.b.Keys) == 0 {
		return nil
	}
	r.frame = journal.EncodeBatch(r.frame[:0], &r.b)
	tenant, signal := r.b.Tenant, r.b.Signal
	r.b.Reset()
	r.b.Tenant, r.b.Signal, r.bytes = tenant, signal, 0
	return r.c.w.write(wire.Record, r.frame)
}

// labels streams the names of labels, or the values of one.
func (h *Handler) labels(ctx context.Context, c *call) error {
	var found []string
	var err error
	if c.of.Label == "" {
		found, _, err = c.querier.LabelNames(ctx, c.req, 0)
	} else {
		found, _, err = c.querier.LabelValues(ctx, c.req, c.of.Label, 0)
	}
	if err != nil {
		return err
	}
	if err := c.head(""); err != nil {
		return err
	}
	s := texts{c: c}
	for _, x := range found {
		if err := s.add([]byte(x)); err != nil {
			return err
		}
	}
	return s.end()
}

// names streams the names of series without further labels.
func (h *Handler) names(ctx context.Context, c *call) error {
	sets, release, err := c.querier.Names(ctx, c.req)
	if err != nil {
		return err
	}
	defer release()
	if err := c.head(""); err != nil {
		return err
	}
	s := texts{c: c}
	for _, set := range sets {
		if r := set.Range(); r.Min > r.Max {
			continue
		}
		if err := set.Each(ctx, s.add); err != nil {
			return err
		}
	}
	return s.end()
}

// texts gathers strings into frames.
type texts struct {
	c     *call
	frame []byte
}

func (s *texts) add(x []byte) error {
	s.frame = wire.AppendString(s.frame, x)
	if len(s.frame) < wire.TargetBytes {
		return nil
	}
	return s.flush()
}

func (s *texts) flush() error {
	frame := s.frame
	s.frame = s.frame[:0]
	return s.c.w.write(wire.Strings, frame)
}

func (s *texts) end() error {
	if len(s.frame) > 0 {
		if err := s.flush(); err != nil {
			return err
		}
	}
	return s.c.trailer()
}
