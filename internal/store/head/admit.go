package head

import (
	"errors"
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/rows"
	"github.com/shaledb/shale/internal/store/known"
)

// Resolve appends to dst the indexes of the series whose labels are not known to be durable, ascending, and
// marks the others as active. The batch must carry the labels of the former; [Head.Create] says how many of
// them are accepted.
//
// An error refuses the whole batch. Class transient: a new tenant exceeds the limit. Class invalid: the rows
// can never pass through the buffers into a part. Such rows must not reach the journal, since nothing would
// remove them from it.
func (h *Head) Resolve(b *model.Batch, dst []uint32) ([]uint32, error) {
	if _, err := h.tenants.admit(b.Tenant); err != nil {
		return dst, err
	}
	if need, most := rows.BatchPeakBytes(b), h.o.maxPeakBytes(); need > most {
		return dst, fmt.Errorf("%w: sorting the rows of the request takes %d bytes and the row buffer has %d; send smaller requests or give Shale more memory",
			model.ErrInvalid, need, most)
	}
	return h.ResolveDurable(b, dst)
}

// ResolveDurable is [Head.Resolve] for a batch that was acknowledged, and so must not be refused. No limit
// applies to it: a tenant may be one too many, and rows that exceed the row buffer are taken when it is
// empty. An error is of class invalid: a row can never pass into a part.
func (h *Head) ResolveDurable(b *model.Batch, dst []uint32) ([]uint32, error) {
	tenant := h.tenants.must(b.Tenant)
	r := h.resolving.Get().(*resolver)
	defer h.resolving.Put(r)
	if err := r.checkBlobs(b); err != nil {
		return dst, err
	}
	return h.known.Missing(&r.lookup, tenant, b.Signal, b.Keys, dst), nil
}

// resolver is the memory of resolving one batch.
type resolver struct {
	lookup    known.Lookup
	histogram model.Histogram
}

// checkBlobs makes sure that the part writer accepts every blob of the batch. Receivers have validated them,
// so this finds nothing; but one bad blob in the journal would make every later flush fail.
func (r *resolver) checkBlobs(b *model.Batch) error {
	for _, f := range model.Families() {
		c := b.Columns(f)
		if c.Len() > 0 && (f == model.Text) != (b.Signal == model.Logs) {
			return fmt.Errorf("%w: family %d does not belong in a batch of %s", model.ErrInvalid, f, b.Signal)
		}
		if len(c.Kinds) == 0 {
			if f == model.Text && c.Len() > 0 {
				return fmt.Errorf("%w: lines without kinds", model.ErrInvalid)
			}
			continue
		}
		for i := range c.Times {
			if err := r.checkBlob(f, &c.Rows, i); err != nil {
				return fmt.Errorf("row %d: %w", i, err)
			}
		}
	}
	return nil
}

func (r *resolver) checkBlob(f model.Family, columns *model.Rows, i int) error {
	kind := columns.Kind(i)
	if kind == model.KindFloat && f == model.Samples {
		return nil
	}
	blob := columns.Blob(i)
	if len(blob) > rows.MaxBlobBytes {
		return fmt.Errorf("%w: value has %d bytes and the limit is %d", model.ErrInvalid, len(blob), rows.MaxBlobBytes)
	}
	var err error
	switch {
	case kind == model.KindHistogram && f == model.Samples:
		hg := &r.histogram
		if err = hg.Parse(blob); err == nil && (buckets(hg.PositiveSpans) != len(hg.Positive) || buckets(hg.NegativeSpans) != len(hg.Negative)) {
			err = errors.New("histogram: spans and buckets differ in number")
		}
	case kind == model.KindExemplar && f == model.Exemplars:
		if _, err = model.ParseExemplar(blob); err == nil && columns.Start(i) != 0 {
			err = errors.New("exemplar has a start timestamp")
		}
	case kind == model.KindText && f == model.Text:
		if _, err = model.ParseLine(blob); err == nil && columns.Start(i) != 0 {
			err = errors.New("line has a start timestamp")
		}
	default:
		err = fmt.Errorf("kind %d does not belong in family %d", kind, f)
	}
	if err != nil {
		return fmt.Errorf("%w: %v", model.ErrInvalid, err)
	}
	return nil
}

// buckets returns how many buckets the spans have.
func buckets(spans []model.HistogramSpan) (n int) {
	for _, s := range spans {
		n += int(s.Length)
	}
	return n
}
