package part

import (
	"fmt"
	"io"

	"github.com/shaledb/shale/internal/model"
)

// sectionHooks are what a writer of sections does when the container asks it to. A nil function does nothing.
type sectionHooks struct {
	// beginSeries is called for each series, in order. Its rank is that of the writer.
	beginSeries func(k model.Key, l model.Labels) error
	// endSeries is called before the next series of the tenant begins.
	endSeries func() error
	// endTenant writes what is left of the tenant, and of its last series: no page spans two tenants.
	endTenant func() error
	// release gives up memory when the part is finished.
	release func()
}

// sizes say when things are closed. They are no part of the format as long as they stay within what readers accept, so
// tests make small ones.
type sizes struct {
	page, index, list int // bytes
	rows, seriesRows  int // of a page of samples
	text              int // bytes: of the lines of a unit
	slice, filters    int // bytes: of a slice of filters, and of filters that are sliced together
	textRows          int // of a unit
	ties              int // rows of one time whose content a merge remembers
}

// fileWriter writes the pages of one file and indexes them by section, whatever is in them.
type fileWriter struct {
	w        io.Writer
	sections sectionList
	sizes    sizes
	dense    bool
	off      int64
	footer   footer
	index    []indexWriter
	rank     uint32 // of the current series
	mask     uint64 // its windows
	// payload is room for the payload of a page, see Page.
	payload, stored []byte
}

func newFileWriter(w io.Writer, m Meta, sections sectionList, dense bool, z sizes) *fileWriter {
	f := &fileWriter{w: w, sections: sections, sizes: z, dense: dense, index: make([]indexWriter, len(sections))}
	f.footer.meta = m
	f.footer.meta.Range = noTimes
	for i, s := range sections {
		f.index[i].section = s
	}
	return f
}

// Meta returns what the part says about itself so far.
func (f *fileWriter) Meta() *Meta { return &f.footer.meta }

// Dense reports whether small is better than cheap.
func (f *fileWriter) Dense() bool { return f.dense }

// TextCodec is the codec of pages that are text, or lists.
func (f *fileWriter) TextCodec() byte {
	if f.dense {
		return codecZstd
	}
	return codecS2
}

// NumberCodec is the codec of pages of samples, whose columns are packed already.
func (f *fileWriter) NumberCodec() byte {
	if f.dense {
		return codecZstd
	}
	return codecNone
}

// Rank returns the rank of the current series.
func (f *fileWriter) Rank() uint32 { return f.rank }

// Tenant returns the current tenant, nil before the first.
func (f *fileWriter) Tenant() *Tenant {
	if n := len(f.footer.meta.Tenants); n > 0 {
		return &f.footer.meta.Tenants[n-1]
	}
	return nil
}

// BeginTenant begins the next tenant.
func (f *fileWriter) BeginTenant(name string) {
	m := &f.footer.meta
	m.Tenants = append(m.Tenants, Tenant{Name: name, Rank0: uint32(m.Series), Range: noTimes})
}

// EndTenant adds the counts of the current tenant to those of the part.
func (f *fileWriter) EndTenant() {
	t, m := f.Tenant(), &f.footer.meta
	m.add(t)
	m.Range.Min, m.Range.Max = min(m.Range.Min, t.Range.Min), max(m.Range.Max, t.Range.Max)
}

// BeginSeries begins the next series of the tenant.
func (f *fileWriter) BeginSeries() {
	f.rank = uint32(f.footer.meta.Series)
	f.footer.meta.Series++
	f.Tenant().Series++
}

// AddTimes enters the ascending times of rows of the current series in the range of the tenant and in the mask of the
// series. There is at least one.
func (f *fileWriter) AddTimes(times []int64) {
	r := &f.Tenant().Range
	r.Min, r.Max = min(r.Min, times[0]), max(r.Max, times[len(times)-1])
	if w := &f.footer.meta.Windows; w.Count > 0 {
		f.mask |= w.of(times)
	}
}

// TakeMask returns the windows of the times that were added since the last call.
func (f *fileWriter) TakeMask() uint64 {
	m := f.mask
	f.mask = 0
	return m
}

// Page writes the page whose payload is in f.payload.
func (f *fileWriter) Page(codec byte) (Addr, error) {
	if len(f.payload) > maxPageBytes {
		return Addr{}, invalid("page of %d bytes; the most is %d", len(f.payload), maxPageBytes)
	}
	var err error
	if f.stored, err = sealPage(f.stored[:0], f.payload, codec); err != nil {
		return Addr{}, err
	}
	return f.Stored(f.stored)
}

// Stored writes a page that is stored already.
func (f *fileWriter) Stored(stored []byte) (Addr, error) {
	if f.off == 0 {
		if err := f.write([]byte(header)); err != nil {
			return Addr{}, err
		}
	}
	a := Addr{Off: f.off, Len: uint32(len(stored))}
	return a, f.write(stored)
}

// Enter enters a page in the index of its section.
func (f *fileWriter) Enter(s *section, e pageEntry) error {
	x := &f.index[s.number]
	x.add(e)
	if x.full(f.sizes.index) {
		return f.flushIndex(x)
	}
	return nil
}

func (f *fileWriter) flushIndex(x *indexWriter) error {
	if x.count == 0 {
		return nil
	}
	f.payload = x.payload(f.payload[:0])
	a, err := f.Page(f.TextCodec())
	if err == nil {
		x.sealed(a)
	}
	return err
}

// Finish writes the index pages that are left, the footer and the tail, and returns the size of the file.
func (f *fileWriter) Finish() (int64, error) {
	if f.off == 0 {
		if err := f.write([]byte(header)); err != nil {
			return f.off, err
		}
	}
	f.footer.index = make([][]pageEntry, len(f.index))
	for i := range f.index {
		if err := f.flushIndex(&f.index[i]); err != nil {
			return f.off, err
		}
		f.footer.index[i] = f.index[i].pages
	}
	f.payload = f.footer.append(f.payload[:0], f.sections)
	if len(f.payload) > maxFooterBytes {
		return f.off, invalid("footer of %d bytes; the most is %d", len(f.payload), maxFooterBytes)
	}
	stored, err := sealPage(f.stored[:0], f.payload, f.TextCodec())
	if err == nil {
		err = f.write(appendTail(stored, len(stored)))
	}
	return f.off, err
}

// Size returns how many bytes have been written.
func (f *fileWriter) Size() int64 { return f.off }

func (f *fileWriter) write(b []byte) error {
	n, err := f.w.Write(b)
	f.off += int64(n)
	if err != nil {
		return fmt.Errorf("part: write at %d: %w: %w", f.off, model.ErrTransient, err)
	}
	return nil
}
