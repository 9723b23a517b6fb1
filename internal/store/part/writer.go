package part

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/samples"
	"github.com/shaledb/shale/internal/store/part/series"
	"github.com/shaledb/shale/internal/store/part/text"
)

// Compression chooses between cheap and small.
type Compression uint8

const (
	// Fast is for parts that will soon be merged: numbers as their codecs leave them, text with s2.
	Fast Compression = iota
	// Dense is for blocks: denser packing of numbers, zstd for what it shortens.
	Dense
)

// WriterOptions say what a part is about.
type WriterOptions struct {
	Seed   model.KeySeed
	Signal model.Signal
	// Sources are the journals whose rows the part holds, by (Node, Epoch), each once. Without them it is one
	// source, of Node, Epoch, SeqLo and SeqHi.
	Sources      []file.Source
	Node         string
	Epoch        uint64
	SeqLo, SeqHi uint64
	Level        Compression
	// Labels says that every series comes with its labels. Then the part has labels and postings.
	Labels bool
	// Windows, if their Count is not 0, give each series a mask: see [Windows].
	Windows file.Windows
	// Created is in Unix nanoseconds.
	Created int64
	// Plain leaves trees of names out, so that programs read the part that do not know them.
	Plain bool
	// Workers is how many goroutines code lines at one time at most; 0: as many as Go has threads. The bytes do
	// not depend on it.
	Workers int
}

// Writer writes one part, series after series. Its memory is a page of each section, a few units of text and
// their filters, and, with labels, the postings of one tenant. After an error every call returns that error.
type Writer struct {
	file *file.Writer
	// The sections that are given something other than keys and labels. They are called directly: through a
	// function value the rows would escape, an allocation a series.
	samples   *samples.Writer
	exemplars *samples.ExemplarWriter
	text      *text.Writer
	// What the sections want to be called for, in the order in which they write.
	beginSeries []func(model.Key, model.Labels) error
	endSeries   []func() error
	endTenant   []func() error
	release     []func()

	last  model.Key
	given bool // the current series has its rows
	err   error
	done  bool
}

// NewWriter starts a part. Bytes go to w a page at a time, so w need not buffer.
func NewWriter(w io.Writer, o WriterOptions) *Writer {
	return newWriter(w, o, formatSizes)
}

var formatSizes = file.Sizes{
	PageBytes: file.PageBytes, IndexBytes: file.PageBytes, ListBytes: series.MaxListBytes, Rows: file.MaxPageRows, SeriesRows: samples.MaxSeriesRows,
	TextBytes: text.UnitBytes, SliceBytes: text.SliceBytes, FilterBytes: text.FilterBytes, GroupBytes: text.GroupBytes, TextRows: text.MaxUnitRows, Ties: text.MaxTies, LeastNames: series.LeastNames,
}

func newWriter(w io.Writer, o WriterOptions, z file.Sizes) *Writer {
	p := &Writer{}
	m := file.Meta{Seed: o.Seed, Signal: o.Signal, Created: o.Created, Labels: o.Labels, Windows: o.Windows}
	if len(o.Sources) == 0 {
		o.Sources = []file.Source{{Node: o.Node, Epoch: o.Epoch, SeqLo: o.SeqLo, SeqHi: o.SeqHi}}
	}
	if why := m.SetSources(o.Sources); why != "" {
		p.err = column.Invalid("%s", why)
	}
	if o.Plain {
		z.LeastNames = math.MaxInt
	}
	if !o.Windows.Valid() {
		p.err = column.Invalid("%d windows of %d ns from %d on", o.Windows.Count, o.Windows.Length, o.Windows.Start)
	}
	p.file = file.NewWriter(w, m, sections, o.Level == Dense, z)
	for i := range families {
		p.listen(families[i].writer(p))
	}
	p.text.Workers = o.Workers
	return p
}

func (p *Writer) listen(h file.Hooks) {
	if h.BeginSeries != nil {
		p.beginSeries = append(p.beginSeries, h.BeginSeries)
	}
	if h.EndSeries != nil {
		p.endSeries = append(p.endSeries, h.EndSeries)
	}
	if h.EndTenant != nil {
		p.endTenant = append(p.endTenant, h.EndTenant)
	}
	if h.Release != nil {
		p.release = append(p.release, h.Release)
	}
}

// Series starts the next series. (tenant, key) must ascend. Labels must be given if and only if the part has
// them, and be canonical. Breaking any of this is an error of class invalid.
func (p *Writer) Series(tenant string, k model.Key, l model.Labels) error {
	if p.err != nil {
		return p.err
	}
	p.err = p.series(tenant, k, l)
	return p.err
}

func (p *Writer) series(tenant string, k model.Key, l model.Labels) error {
	m := p.file.Meta()
	t := p.file.Tenant()
	switch {
	case p.done:
		return column.Invalid("series after Finish")
	case (l != nil) != m.Labels:
		return column.Invalid("series %s: labels given: %t, part has labels: %t", k, l != nil, m.Labels)
	case len(l) > model.MaxLabelBytes:
		return column.Invalid("series %s: labels of %d bytes; the most is %d", k, len(l), model.MaxLabelBytes)
	case m.Series >= 1<<32-1:
		return column.Invalid("more than %d series", uint32(1<<32-1))
	case t == nil || t.Name != tenant:
		if err := p.nextTenant(tenant); err != nil {
			return err
		}
	case !p.last.Less(k):
		return column.Invalid("series %s after %s", k, p.last)
	default:
		for _, end := range p.endSeries {
			if err := end(); err != nil {
				return err
			}
		}
	}
	p.file.BeginSeries()
	for _, begin := range p.beginSeries {
		if err := begin(k, l); err != nil {
			return err
		}
	}
	p.last, p.given = k, false
	return nil
}

func (p *Writer) nextTenant(name string) error {
	if t := p.file.Tenant(); t != nil {
		if name <= t.Name {
			return column.Invalid("tenant %q after %q", name, t.Name)
		}
		if err := p.closeTenant(); err != nil {
			return err
		}
	}
	p.file.BeginTenant(name)
	return nil
}

func (p *Writer) closeTenant() error {
	for _, end := range p.endTenant {
		if err := end(); err != nil {
			return err
		}
	}
	p.file.EndTenant()
	return nil
}

// Rows gives the current series its rows, as SeriesRows.Normalize leaves them. It may be called once per
// series, or not at all. Rows that are not of their family, histograms that do not parse or whose spans do
// not fit their buckets, and exemplars whose labels are not canonical are errors of class invalid.
func (p *Writer) Rows(r *model.SeriesRows) error {
	if p.err != nil || r.Len() == 0 {
		return p.err
	}
	if p.done || p.file.Meta().Series == 0 || p.given {
		p.err = column.Invalid("rows without a series, or a second time")
		return p.err
	}
	p.given = true
	err := p.samples.Rows(&r.Samples)
	if err == nil {
		err = p.exemplars.Rows(&r.Exemplars)
	}
	if err != nil {
		p.err = fmt.Errorf("series %s: %w", p.last, err)
	}
	return p.err
}

// Text gives the current series its text: that of all inputs, the oldest first, within clip. Rows are merged
// by time, at equal times by input, then by arrival; of rows that are equal in time, line and metadata the
// first stays. It may be called several times for a series, with clips that ascend and have no time in
// common. It holds a page or two of each input.
func (p *Writer) Text(ctx context.Context, texts []text.Series, clip model.TimeRange) error {
	if p.err != nil || len(texts) == 0 {
		return p.err
	}
	if p.done || p.file.Meta().Series == 0 {
		p.err = column.Invalid("text without a series")
		return p.err
	}
	if err := p.text.Merge(ctx, texts, clip); err != nil {
		p.err = fmt.Errorf("series %s: %w", p.last, err)
	}
	return p.err
}

// Finish writes what is left, the index and the footer, and returns what the part says about itself and its
// size in bytes. It neither syncs nor closes.
func (p *Writer) Finish() (file.Meta, int64, error) {
	if p.err == nil {
		p.err = p.finish()
	}
	return *p.file.Meta(), p.file.Size(), p.err
}

func (p *Writer) finish() error {
	if p.done {
		return column.Invalid("finished twice")
	}
	p.done = true
	if p.file.Tenant() != nil {
		if err := p.closeTenant(); err != nil {
			return err
		}
	}
	_, err := p.file.Finish()
	for _, release := range p.release {
		release()
	}
	return err
}
