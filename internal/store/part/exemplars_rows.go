package part

import (
	"github.com/shaledb/shale/internal/model"
)

// exemplarSection holds the exemplars of series.
var exemplarSection = &section{number: 4, kind: rowKind, family: byte(model.Exemplars), name: "exemplars", form: rowEntries}

// exemplarWriter writes the exemplars of series.
type exemplarWriter struct {
	w    *fileWriter
	page exemplarPage
}

func newExemplarWriter(w *fileWriter) *exemplarWriter {
	p := &exemplarWriter{w: w}
	p.page.ints.dense, p.page.values.ints.dense = w.Dense(), w.Dense()
	p.page.reset()
	return p
}

func (p *exemplarWriter) hooks() sectionHooks { return sectionHooks{endTenant: p.flush} }

// rows gives the current series its exemplars.
func (p *exemplarWriter) rows(r *model.Rows) error {
	n := len(r.Times)
	if n == 0 {
		return nil
	}
	if err := checkColumns(exemplarSection, r); err != nil {
		return err
	}
	p.w.Tenant().Exemplars += uint64(n)
	p.w.AddTimes(r.Times)
	for i, t := range r.Times {
		if i > 0 && t < r.Times[i-1] {
			return invalid("exemplars: time %d after %d", t, r.Times[i-1])
		}
		if _, err := blobSize(r, i, model.KindExemplar); err != nil {
			return err
		}
		e, err := model.ParseExemplar(r.Blob(i))
		switch {
		case err != nil:
			return invalid("time %d: %v", t, err)
		case len(e.Labels) > model.MaxLabelBytes:
			return invalid("time %d: exemplar with labels of %d bytes; the most is %d", t, len(e.Labels), model.MaxLabelBytes)
		case r.Start(i) != 0:
			return invalid("time %d: an exemplar with a start", t)
		}
		if err := p.add(t, e); err != nil {
			return err
		}
	}
	return nil
}

func (p *exemplarWriter) add(t int64, e model.Exemplar) error {
	rank := p.w.Rank()
	if !p.page.empty() && rank-p.page.rank0 >= maxPageRanks {
		if err := p.flush(); err != nil {
			return err
		}
	}
	p.page.add(rank, t, e)
	if p.page.full(&p.w.sizes) {
		return p.flush()
	}
	return nil
}

func (p *exemplarWriter) flush() error {
	x := &p.page
	if x.empty() {
		return nil
	}
	p.w.payload = x.payload(p.w.payload[:0])
	a, err := p.w.Page(p.w.TextCodec())
	if err != nil {
		return err
	}
	e := pageEntry{addr: a, rank0: x.rank0, ranks: uint32(len(x.counts)), rows: uint64(len(x.times)), times: x.span}
	x.reset()
	return p.w.Enter(exemplarSection, e)
}
