package samples

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// ExemplarSection holds the exemplars of series.
var ExemplarSection = &file.Section{Number: 4, Kind: file.RowKind, Family: byte(model.Exemplars), Name: "exemplars", Form: file.RowEntries}

// ExemplarWriter writes the exemplars of series.
type ExemplarWriter struct {
	w    *file.Writer
	page exemplarPage
}

// NewExemplarWriter returns the writer of exemplars of a file.
func NewExemplarWriter(w *file.Writer) *ExemplarWriter {
	p := &ExemplarWriter{w: w}
	p.page.ints.Dense, p.page.values.Ints.Dense = w.Dense(), w.Dense()
	p.page.reset()
	return p
}

// Hooks returns what the container calls.
func (p *ExemplarWriter) Hooks() file.Hooks { return file.Hooks{EndTenant: p.flush} }

// Rows gives the current series its exemplars.
func (p *ExemplarWriter) Rows(r *model.Rows) error {
	n := len(r.Times)
	if n == 0 {
		return nil
	}
	if err := checkColumns(ExemplarSection, r); err != nil {
		return err
	}
	p.w.Tenant().Exemplars += uint64(n)
	p.w.AddTimes(r.Times)
	for i, t := range r.Times {
		if i > 0 && t < r.Times[i-1] {
			return column.Invalid("exemplars: time %d after %d", t, r.Times[i-1])
		}
		if _, err := blobSize(r, i, model.KindExemplar); err != nil {
			return err
		}
		e, err := model.ParseExemplar(r.Blob(i))
		switch {
		case err != nil:
			return column.Invalid("time %d: %v", t, err)
		case len(e.Labels) > model.MaxLabelBytes:
			return column.Invalid("time %d: exemplar with labels of %d bytes; the most is %d", t, len(e.Labels), model.MaxLabelBytes)
		case r.Start(i) != 0:
			return column.Invalid("time %d: an exemplar with a start", t)
		}
		if err := p.add(t, e); err != nil {
			return err
		}
	}
	return nil
}

func (p *ExemplarWriter) add(t int64, e model.Exemplar) error {
	rank := p.w.Rank()
	if !p.page.empty() && rank-p.page.rank0 >= file.MaxPageRanks {
		if err := p.flush(); err != nil {
			return err
		}
	}
	p.page.add(rank, t, e)
	if p.page.full(&p.w.Sizes) {
		return p.flush()
	}
	return nil
}

func (p *ExemplarWriter) flush() error {
	x := &p.page
	if x.empty() {
		return nil
	}
	p.w.Payload = x.payload(p.w.Payload[:0])
	e := file.Entry{Rank0: x.rank0, Ranks: uint32(len(x.counts)), Rows: uint64(len(x.times)), Times: x.span}
	x.reset()
	return p.w.AddPage(ExemplarSection, p.w.TextCodec(), e)
}
