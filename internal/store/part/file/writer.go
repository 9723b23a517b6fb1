package file

import (
	"fmt"
	"io"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
)

// Hooks are the calls of the container to the writer of a section. A nil function does nothing.
type Hooks struct {
	// BeginSeries is called for each series, in order. Its rank is that of the writer.
	BeginSeries func(k model.Key, l model.Labels) error
	// EndSeries is called before the next series of the tenant begins.
	EndSeries func() error
	// EndTenant writes what is left of the tenant, and of its last series: no page spans two tenants.
	EndTenant func() error
	// Release releases memory when the part is finished.
	Release func()
}

// Sizes say when pages and units are closed. They do not belong to the format, as long as readers accept
// them, so tests use small ones.
type Sizes struct {
	PageBytes, IndexBytes, ListBytes int // bytes
	Rows, SeriesRows                 int // of a page of samples
	TextBytes                        int // bytes: of the lines of a unit
	SliceBytes, FilterBytes          int // bytes: of a slice of filters, and of filters that are sliced together
	TextRows                         int // of a unit
	GroupBytes                       int // stored bytes: of the units that are written together
	LeastNames                       int // of a tenant that gets a tree of names
	Ties                             int // rows of one time whose content a merge remembers
}

// Writer writes the pages of one file and indexes them by section, whatever is in them.
type Writer struct {
	w        io.Writer
	sections Sections
	Sizes    Sizes
	dense    bool
	off      int64
	footer   footer
	index    []IndexWriter
	rank     uint32 // of the current series
	mask     uint64 // its windows
	// Payload is the buffer for the payload of a page, see Page.
	Payload, stored []byte
}

// NewWriter starts a file that m describes. sections are all its sections, by number.
func NewWriter(w io.Writer, m Meta, sections Sections, dense bool, z Sizes) *Writer {
	f := &Writer{w: w, sections: sections, Sizes: z, dense: dense, index: make([]IndexWriter, len(sections))}
	f.footer.meta = m
	f.footer.meta.Range = NoTimes
	for i, s := range sections {
		f.index[i].Section = s
	}
	return f
}

// Meta returns what the part says about itself so far.
func (f *Writer) Meta() *Meta { return &f.footer.meta }

// Dense reports whether the part should be small rather than cheap to write.
func (f *Writer) Dense() bool { return f.dense }

// TextCodec is the codec of pages that are text, or lists.
func (f *Writer) TextCodec() byte {
	if f.dense {
		return CodecZstd
	}
	return CodecS2
}

// NumberCodec is the codec of pages of samples, whose columns are packed already.
func (f *Writer) NumberCodec() byte {
	if f.dense {
		return CodecZstd
	}
	return CodecNone
}

// Rank returns the rank of the current series.
func (f *Writer) Rank() uint32 { return f.rank }

// Tenant returns the current tenant, nil before the first.
func (f *Writer) Tenant() *Tenant {
	if n := len(f.footer.meta.Tenants); n > 0 {
		return &f.footer.meta.Tenants[n-1]
	}
	return nil
}

// BeginTenant begins the next tenant.
func (f *Writer) BeginTenant(name string) {
	m := &f.footer.meta
	m.Tenants = append(m.Tenants, Tenant{Name: name, Rank0: uint32(m.Series), Range: NoTimes})
}

// EndTenant adds the counts of the current tenant to those of the part.
func (f *Writer) EndTenant() {
	t, m := f.Tenant(), &f.footer.meta
	m.add(t)
	m.Range.Min, m.Range.Max = min(m.Range.Min, t.Range.Min), max(m.Range.Max, t.Range.Max)
}

// BeginSeries begins the next series of the tenant.
func (f *Writer) BeginSeries() {
	f.rank = uint32(f.footer.meta.Series)
	f.footer.meta.Series++
	f.Tenant().Series++
}

// AddTimes adds the ascending times of rows of the current series, at least one, to the range of the tenant
// and to the mask of the series.
func (f *Writer) AddTimes(times []int64) {
	r := &f.Tenant().Range
	r.Min, r.Max = min(r.Min, times[0]), max(r.Max, times[len(times)-1])
	if w := &f.footer.meta.Windows; w.Count > 0 {
		f.mask |= w.MaskOf(times)
	}
}

// TakeMask returns the windows of the times that were added since the last call.
func (f *Writer) TakeMask() uint64 {
	m := f.mask
	f.mask = 0
	return m
}

// AddPage writes the page whose payload is in f.Payload, and adds it to the index of its section as e says.
func (f *Writer) AddPage(s *Section, codec byte, e Entry) (err error) {
	if e.Addr, err = f.Page(codec); err != nil {
		return err
	}
	return f.Enter(s, e)
}

// Page writes the page whose payload is in f.Payload.
func (f *Writer) Page(codec byte) (Addr, error) {
	if len(f.Payload) > MaxPageBytes {
		return Addr{}, column.Invalid("page of %d bytes; the most is %d", len(f.Payload), MaxPageBytes)
	}
	var err error
	if f.stored, err = SealPage(f.stored[:0], f.Payload, codec); err != nil {
		return Addr{}, err
	}
	return f.Stored(f.stored)
}

// Stored writes a page, or several one after the other, that are already in their stored form.
func (f *Writer) Stored(stored []byte) (Addr, error) {
	if f.off == 0 {
		if err := f.write([]byte(Header)); err != nil {
			return Addr{}, err
		}
	}
	a := Addr{Off: f.off, Len: uint32(len(stored))}
	return a, f.write(stored)
}

// Enter enters a page in the index of its section.
func (f *Writer) Enter(s *Section, e Entry) error {
	x := &f.index[s.Number]
	x.Add(e)
	if x.full(f.Sizes.IndexBytes) {
		return f.flushIndex(x)
	}
	return nil
}

func (f *Writer) flushIndex(x *IndexWriter) error {
	if x.count == 0 {
		return nil
	}
	f.Payload = x.Payload(f.Payload[:0])
	a, err := f.Page(f.TextCodec())
	if err == nil {
		x.sealed(a)
	}
	return err
}

// Finish writes the index pages that are left, the footer and the tail, and returns the size of the file.
func (f *Writer) Finish() (int64, error) {
	if f.off == 0 {
		if err := f.write([]byte(Header)); err != nil {
			return f.off, err
		}
	}
	f.footer.index = make([][]Entry, len(f.index))
	for i := range f.index {
		if err := f.flushIndex(&f.index[i]); err != nil {
			return f.off, err
		}
		f.footer.index[i] = f.index[i].pages
	}
	f.Payload = f.footer.append(f.Payload[:0], f.sections)
	if len(f.Payload) > MaxFooterBytes {
		return f.off, column.Invalid("footer of %d bytes; the most is %d", len(f.Payload), MaxFooterBytes)
	}
	stored, err := SealPage(f.stored[:0], f.Payload, f.TextCodec())
	if err == nil {
		err = f.write(f.footer.appendTail(stored, len(stored)))
	}
	return f.off, err
}

// Size returns how many bytes have been written.
func (f *Writer) Size() int64 { return f.off }

func (f *Writer) write(b []byte) error {
	n, err := f.w.Write(b)
	f.off += int64(n)
	if err != nil {
		return fmt.Errorf("part: write at %d: %w: %w", f.off, model.ErrTransient, err)
	}
	return nil
}
