package part

import (
	"github.com/shaledb/shale/internal/model"
)

// sampleSection holds the samples of series: floats and histograms.
var sampleSection = &section{number: 3, kind: rowKind, family: byte(model.Samples), name: "samples", form: rowEntries}

// sampleWriter writes the samples of series.
type sampleWriter struct {
	w    *fileWriter
	page samplePage
}

func newSampleWriter(w *fileWriter) *sampleWriter {
	p := &sampleWriter{w: w}
	p.page.ints.dense, p.page.values.ints.dense = w.Dense(), w.Dense()
	p.page.reset()
	return p
}

func (p *sampleWriter) hooks() sectionHooks { return sectionHooks{endTenant: p.flush} }

// rows gives the current series its samples.
func (p *sampleWriter) rows(r *model.Rows) error {
	n := len(r.Times)
	if n == 0 {
		return nil
	}
	if err := checkColumns(sampleSection, r); err != nil {
		return err
	}
	for i, t := range r.Times[1:] {
		if t <= r.Times[i] {
			return invalid("time %d after %d", t, r.Times[i])
		}
	}
	p.w.Tenant().Samples += uint64(n)
	p.w.AddTimes(r.Times)
	z, rank := &p.w.sizes, p.w.Rank()
	// What fits a page of its own is not cut in two.
	if !p.page.empty() && !p.page.fits(rank, min(n, z.seriesRows), z) {
		if err := p.flush(); err != nil {
			return err
		}
	}
	for i := 0; i < n; {
		j := min(n, i+z.seriesRows)
		if len(r.Kinds) > 0 {
			var err error
			if j, err = boundHistograms(r, i, j); err != nil {
				return err
			}
		}
		if err := p.page.add(rank, r, i, j); err != nil {
			return err
		}
		if i = j; i < n || p.page.full(z) {
			if err := p.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *sampleWriter) flush() error {
	s := &p.page
	if s.empty() {
		return nil
	}
	p.w.payload = s.payload(p.w.payload[:0])
	a, err := p.w.Page(p.w.NumberCodec())
	if err != nil {
		return err
	}
	e := pageEntry{addr: a, rank0: s.rank0, ranks: uint32(len(s.counts)), rows: uint64(s.rows), times: s.times}
	s.reset()
	return p.w.Enter(sampleSection, e)
}

// checkColumns returns an error unless all columns have the same length.
func checkColumns(s *section, r *model.Rows) error {
	n := len(r.Times)
	if len(r.Values) != n || len(r.Starts) != 0 && len(r.Starts) != n || len(r.Kinds) != 0 && len(r.Kinds) != n {
		return invalid("%s: columns of %d times, %d values, %d starts, %d kinds", s, n, len(r.Values), len(r.Starts), len(r.Kinds))
	}
	return nil
}

// boundHistograms lowers j until the histograms of the rows [i, j) may stand in one page.
func boundHistograms(r *model.Rows, i, j int) (int, error) {
	size := 0
	for k := i; k < j; k++ {
		if r.Kinds[k] == model.KindFloat {
			continue
		}
		n, err := blobSize(r, k, model.KindHistogram)
		if err != nil {
			return j, err
		}
		if n > maxHistogramBytes {
			return j, invalid("time %d: a histogram of %d bytes; the most is %d", r.Times[k], n, maxHistogramBytes)
		}
		if size += n; size > maxSeriesBytes {
			return k, nil
		}
	}
	return j, nil
}

// blobSize verifies that row k is of a kind and has its bytes.
func blobSize(r *model.Rows, k int, kind model.Kind) (int, error) {
	at, n := r.Values[k]>>32, r.Values[k]&(1<<32-1)
	switch {
	case r.Kind(k) != kind:
		return 0, invalid("time %d: expected a row of kind %d, got %d", r.Times[k], kind, r.Kind(k))
	case at+n > uint64(len(r.Bytes)):
		return 0, invalid("time %d: a value beyond the bytes of its rows", r.Times[k])
	}
	return int(n), nil
}
