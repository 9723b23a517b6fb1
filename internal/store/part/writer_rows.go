package part

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// Rows gives the current series its rows, as SeriesRows.Normalize leaves them. It may be called once per series, or not at
// all. Rows that are not of their family, histograms that do not parse or whose spans do not fit their buckets, and
// exemplars whose labels are not canonical are errors of class invalid.
func (p *Writer) Rows(r *model.SeriesRows) error {
	if p.err != nil || r.Len() == 0 {
		return p.err
	}
	if p.done || p.footer.meta.Series == 0 || p.given {
		p.err = invalid("rows without a series, or a second time")
		return p.err
	}
	p.given = true
	if p.o.Windows.Count > 0 {
		p.masks.masks[len(p.masks.masks)-1] |= int64(p.o.Windows.ofSeries(r))
	}
	if p.err = p.samplesOf(&r.Samples); p.err == nil && len(r.Exemplars.Times) > 0 {
		p.err = p.exemplarsOf(&r.Exemplars)
	}
	return p.err
}

// ragged returns an error unless the columns are as long as each other.
func ragged(s section, r *model.Rows) error {
	n := len(r.Times)
	if len(r.Values) != n || len(r.Starts) != 0 && len(r.Starts) != n || len(r.Kinds) != 0 && len(r.Kinds) != n {
		return invalid("%s: columns of %d times, %d values, %d starts, %d kinds", s, n, len(r.Values), len(r.Starts), len(r.Kinds))
	}
	return nil
}

func (p *Writer) samplesOf(r *model.Rows) error {
	n := len(r.Times)
	if n == 0 {
		return nil
	}
	if err := ragged(sampleSection, r); err != nil {
		return err
	}
	for i, t := range r.Times[1:] {
		if t <= r.Times[i] {
			return invalid("series %s: time %d after %d", p.last, t, r.Times[i])
		}
	}
	t := p.tenant()
	t.Samples += uint64(n)
	t.Range.Min, t.Range.Max = min(t.Range.Min, r.Times[0]), max(t.Range.Max, r.Times[n-1])
	// What fits a page of its own is not cut in two.
	if !p.samples.empty() && !p.samples.fits(p.rank, min(n, p.sizes.seriesRows), &p.sizes) {
		if err := p.flushSamples(); err != nil {
			return err
		}
	}
	for i := 0; i < n; {
		j := min(n, i+p.sizes.seriesRows)
		if len(r.Kinds) > 0 {
			var err error
			if j, err = boundHistograms(r, i, j); err != nil {
				return fmt.Errorf("series %s: %w", p.last, err)
			}
		}
		if err := p.samples.add(p.rank, r, i, j); err != nil {
			return fmt.Errorf("series %s: %w", p.last, err)
		}
		if i = j; i < n || p.samples.full(&p.sizes) {
			if err := p.flushSamples(); err != nil {
				return err
			}
		}
	}
	return nil
}

// boundHistograms lessens j until the histograms of the rows [i, j) may stand in one page.
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
		return 0, invalid("time %d: a row of kind %d where %d belongs", r.Times[k], r.Kind(k), kind)
	case at+n > uint64(len(r.Bytes)):
		return 0, invalid("time %d: a value beyond the bytes of its rows", r.Times[k])
	}
	return int(n), nil
}

func (p *Writer) exemplarsOf(r *model.Rows) error {
	n := len(r.Times)
	if err := ragged(exemplarSection, r); err != nil {
		return err
	}
	tenant := p.tenant()
	tenant.Exemplars += uint64(n)
	tenant.Range.Min, tenant.Range.Max = min(tenant.Range.Min, r.Times[0]), max(tenant.Range.Max, r.Times[n-1])
	for i, t := range r.Times {
		if i > 0 && t < r.Times[i-1] {
			return invalid("series %s: exemplars: time %d after %d", p.last, t, r.Times[i-1])
		}
		if _, err := blobSize(r, i, model.KindExemplar); err != nil {
			return fmt.Errorf("series %s: %w", p.last, err)
		}
		e, err := model.ParseExemplar(r.Blob(i))
		switch {
		case err != nil:
			return invalid("series %s: time %d: %v", p.last, t, err)
		case len(e.Labels) > model.MaxLabelBytes:
			return invalid("series %s: exemplar with labels of %d bytes; the most is %d", p.last, len(e.Labels), model.MaxLabelBytes)
		case r.Start(i) != 0:
			return invalid("series %s: time %d: an exemplar with a start", p.last, t)
		}
		if !p.exemplars.empty() && p.rank-p.exemplars.rank0 >= maxPageRanks {
			if err := p.flushExemplars(); err != nil {
				return err
			}
		}
		p.exemplars.add(p.rank, t, e)
		if p.exemplars.full(&p.sizes) {
			if err := p.flushExemplars(); err != nil {
				return err
			}
		}
	}
	return nil
}
