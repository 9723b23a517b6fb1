package samples

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// Section holds the samples of series: floats and histograms.
var Section = &file.Section{Number: 3, Kind: file.RowKind, Family: byte(model.Samples), Name: "samples", Form: file.RowEntries}

// Writer writes the samples of series.
type Writer struct {
	w    *file.Writer
	page samplePage
}

// NewWriter returns the writer of samples of a file.
func NewWriter(w *file.Writer) *Writer {
	p := &Writer{w: w}
	p.page.ints.Dense, p.page.values.Ints.Dense = w.Dense(), w.Dense()
	p.page.reset()
	return p
}

// Hooks returns what the container calls.
func (p *Writer) Hooks() file.Hooks { return file.Hooks{EndTenant: p.flush} }

// Rows gives the current series its samples.
func (p *Writer) Rows(r *model.Rows) error {
	n := len(r.Times)
	if n == 0 {
		return nil
	}
	if err := checkColumns(Section, r); err != nil {
		return err
	}
	for i, t := range r.Times[1:] {
		if t <= r.Times[i] {
			return column.Invalid("time %d after %d", t, r.Times[i])
		}
	}
	p.w.Tenant().Samples += uint64(n)
	p.w.AddTimes(r.Times)
	z, rank := &p.w.Sizes, p.w.Rank()
	// What fits a page of its own is not cut in two.
	if !p.page.empty() && !p.page.fits(rank, min(n, z.SeriesRows), z) {
		if err := p.flush(); err != nil {
			return err
		}
	}
	for i := 0; i < n; {
		j := min(n, i+z.SeriesRows)
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

func (p *Writer) flush() error {
	s := &p.page
	if s.empty() {
		return nil
	}
	p.w.Payload = s.payload(p.w.Payload[:0])
	e := file.Entry{Rank0: s.rank0, Ranks: uint32(len(s.counts)), Rows: uint64(s.rows), Times: s.times}
	s.reset()
	return p.w.AddPage(Section, p.w.NumberCodec(), e)
}

// checkColumns returns an error unless all columns have the same length.
func checkColumns(s *file.Section, r *model.Rows) error {
	n := len(r.Times)
	if len(r.Values) != n || len(r.Starts) != 0 && len(r.Starts) != n || len(r.Kinds) != 0 && len(r.Kinds) != n {
		return column.Invalid("%s: columns of %d times, %d values, %d starts, %d kinds", s, n, len(r.Values), len(r.Starts), len(r.Kinds))
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
		if n > MaxHistogramBytes {
			return j, column.Invalid("time %d: a histogram of %d bytes; the most is %d", r.Times[k], n, MaxHistogramBytes)
		}
		if size += n; size > MaxSeriesBytes {
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
		return 0, column.Invalid("time %d: expected a row of kind %d, got %d", r.Times[k], kind, r.Kind(k))
	case at+n > uint64(len(r.Bytes)):
		return 0, column.Invalid("time %d: a value beyond the bytes of its rows", r.Times[k])
	}
	return int(n), nil
}
