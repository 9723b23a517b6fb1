package part

import (
	"fmt"
	"io"
	"math"

	"github.com/shaledb/shale/internal/model"
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
	// Sources are the journals whose rows the part holds, by (Node, Epoch), each once. Without them it is one source, of
	// Node, Epoch, SeqLo and SeqHi.
	Sources      []Source
	Node         string
	Epoch        uint64
	SeqLo, SeqHi uint64
	Level        Compression
	// Labels says that every series comes with its labels. Then the part has labels and postings.
	Labels bool
	// Windows, if their Count is not 0, give each series a mask: see [Windows].
	Windows Windows
	// Created is in Unix nanoseconds.
	Created int64
}

// Writer writes one part, series after series. Its memory is a page of each section, some units of text and their filters, and,
// with labels, the postings of one tenant. After an error every call returns that error.
type Writer struct {
	w      io.Writer
	o      WriterOptions
	sizes  sizes
	off    int64
	footer footer
	index  [sections]indexWriter

	keys      keyPage
	labels    labelPage
	postings  postings
	samples   samplePage
	exemplars exemplarPage
	masks     maskPage
	text      textWriter

	rank  uint32 // of the current series
	last  model.Key
	given bool // the current series has its rows

	payload, stored, list, piece []byte
	err                          error
	done                         bool
}

// NewWriter starts a part. Bytes go to w a page at a time, so w need not buffer.
func NewWriter(w io.Writer, o WriterOptions) *Writer {
	return newWriter(w, o, formatSizes)
}

// sizes say when things are closed. They are no part of the format as long as they stay within what readers accept, so
// tests make small ones.
type sizes struct {
	page, index, list int // bytes
	rows, seriesRows  int // of a page of samples
	text              int // bytes: of the lines of a unit
	slice, filters    int // bytes: of a slice of filters, and of filters that are sliced together
	textRows          int // of a unit
	ties              int // rows of one time of which a merge remembers what they are
}

// stays is how many bytes of lines make a unit that is coded at once as it will stay, and copied from then on: a quarter of a
// page. Half a page takes a twentieth more time, since what is smaller is coded twice; a quarter takes a fiftieth more on the disk.
func (z *sizes) stays() int { return z.text / 4 }

var formatSizes = sizes{
	page: pageBytes, index: pageBytes, list: maxListBytes, rows: maxPageRows, seriesRows: maxSeriesRows,
	text: unitBytes, slice: sliceBytes, filters: filterBytes, textRows: maxUnitRows, ties: maxTies,
}

func newWriter(w io.Writer, o WriterOptions, z sizes) *Writer {
	p := &Writer{w: w, o: o, sizes: z}
	p.footer.meta = Meta{
		Seed: o.Seed, Signal: o.Signal, Created: o.Created, Labels: o.Labels, Windows: o.Windows, Range: noTimes,
	}
	if len(o.Sources) == 0 {
		o.Sources = []Source{{Node: o.Node, Epoch: o.Epoch, SeqLo: o.SeqLo, SeqHi: o.SeqHi}}
	}
	if why := p.footer.meta.setSources(o.Sources); why != "" {
		p.err = invalid("%s", why)
	}
	if !o.Windows.valid() {
		p.err = invalid("%d windows of %d ns from %d on", o.Windows.Count, o.Windows.Length, o.Windows.Start)
	}
	for i := range p.index {
		p.index[i].section = section(i)
	}
	p.samples.ints.dense, p.samples.values.ints.dense = o.Level == Dense, o.Level == Dense
	p.samples.reset()
	p.exemplars.ints.dense, p.exemplars.values.ints.dense = o.Level == Dense, o.Level == Dense
	p.exemplars.reset()
	p.text.last = math.MinInt64
	p.postings = newPostings(uint64(o.Seed))
	return p
}

// Series starts the next series. (tenant, key) must ascend. Labels must be given if and only if the part has them, and
// be canonical. Breaking any of this is an error of class invalid.
func (p *Writer) Series(tenant string, k model.Key, l model.Labels) error {
	if p.err != nil {
		return p.err
	}
	p.err = p.series(tenant, k, l)
	return p.err
}

func (p *Writer) series(tenant string, k model.Key, l model.Labels) error {
	m := &p.footer.meta
	t := p.tenant()
	switch {
	case p.done:
		return invalid("series after Finish")
	case (l != nil) != p.o.Labels:
		return invalid("series %s: labels given: %t, part has labels: %t", k, l != nil, p.o.Labels)
	case len(l) > model.MaxLabelBytes:
		return invalid("series %s: labels of %d bytes; the most is %d", k, len(l), model.MaxLabelBytes)
	case m.Series >= 1<<32-1:
		return invalid("more than %d series", uint32(1<<32-1))
	case t == nil || t.Name != tenant:
		if err := p.nextTenant(tenant); err != nil {
			return err
		}
		t = p.tenant()
	case !p.last.Less(k):
		return invalid("series %s after %s", k, p.last)
	}
	if err := p.endText(); err != nil {
		return err
	}
	p.rank = uint32(m.Series)
	p.keys.add(p.rank, k)
	if p.keys.full(p.sizes.page) {
		if err := p.flushKeys(); err != nil {
			return err
		}
	}
	if p.o.Labels {
		if err := p.addLabels(l); err != nil {
			return err
		}
	}
	if p.o.Windows.Count > 0 {
		if err := p.addMask(); err != nil {
			return err
		}
	}
	p.last, p.given = k, false
	m.Series++
	t.Series++
	return nil
}

func (p *Writer) addLabels(l model.Labels) error {
	if err := p.postings.add(p.rank-p.tenant().Rank0, l); err != nil {
		return err
	}
	p.labels.add(p.rank, l)
	if p.labels.full(p.sizes.page) {
		return p.flushLabels()
	}
	return nil
}

// tenant returns the current tenant, nil before the first.
func (p *Writer) tenant() *Tenant {
	if n := len(p.footer.meta.Tenants); n > 0 {
		return &p.footer.meta.Tenants[n-1]
	}
	return nil
}

func (p *Writer) nextTenant(name string) error {
	if t := p.tenant(); t != nil {
		if name <= t.Name {
			return invalid("tenant %q after %q", name, t.Name)
		}
		if err := p.endTenant(); err != nil {
			return err
		}
	}
	m := &p.footer.meta
	m.Tenants = append(m.Tenants, Tenant{Name: name, Rank0: uint32(m.Series), Range: noTimes})
	return nil
}

// endTenant writes what is left of the current tenant, since no page spans two.
func (p *Writer) endTenant() error {
	if err := p.flushKeys(); err != nil {
		return err
	}
	if err := p.flushLabels(); err != nil {
		return err
	}
	if err := p.flushSamples(); err != nil {
		return err
	}
	if err := p.flushExemplars(); err != nil {
		return err
	}
	if err := p.flushText(); err != nil {
		return err
	}
	if err := p.flushMasks(); err != nil {
		return err
	}
	if err := p.flushPostings(); err != nil {
		return err
	}
	t, m := p.tenant(), &p.footer.meta
	m.add(t)
	m.Range.Min, m.Range.Max = min(m.Range.Min, t.Range.Min), max(m.Range.Max, t.Range.Max)
	return nil
}

// addMask begins the mask of the current series.
func (p *Writer) addMask() error {
	if p.masks.full(p.sizes.page) {
		if err := p.flushMasks(); err != nil {
			return err
		}
	}
	if len(p.masks.masks) == 0 {
		p.masks.rank0 = p.rank
	}
	p.masks.masks = append(p.masks.masks, 0)
	return nil
}

// Finish writes what is left, the index and the footer, and returns what the part says of itself and its size in bytes.
// It neither syncs nor closes.
func (p *Writer) Finish() (Meta, int64, error) {
	if p.err == nil {
		p.err = p.finish()
	}
	return p.footer.meta, p.off, p.err
}

func (p *Writer) finish() error {
	if p.done {
		return invalid("finished twice")
	}
	p.done = true
	if p.tenant() != nil {
		if err := p.endTenant(); err != nil {
			return err
		}
	}
	if p.off == 0 {
		if err := p.write([]byte(header)); err != nil {
			return err
		}
	}
	for i := range p.index {
		if err := p.flushIndex(&p.index[i]); err != nil {
			return err
		}
		p.footer.index[i] = p.index[i].pages
	}
	p.text.releaseUnits()
	p.payload = p.footer.append(p.payload[:0])
	if len(p.payload) > maxFooterBytes {
		return invalid("footer of %d bytes; the most is %d", len(p.payload), maxFooterBytes)
	}
	stored, err := sealPage(p.stored[:0], p.payload, p.textCodec())
	if err != nil {
		return err
	}
	return p.write(appendTail(stored, len(stored)))
}

func (p *Writer) write(b []byte) error {
	n, err := p.w.Write(b)
	p.off += int64(n)
	if err != nil {
		return fmt.Errorf("part: write at %d: %w: %w", p.off, model.ErrTransient, err)
	}
	return nil
}
