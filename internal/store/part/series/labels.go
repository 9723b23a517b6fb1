package series

import (
	"encoding/binary"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

const (
	// restartRanks is the distance of the label sets that are stored whole, at which reading can start.
	restartRanks = 64

	// maxPageLabels bounds the label sets of a page.
	maxPageLabels = 1 << 14
)

// LabelSection holds the label sets of all series, of parts that have labels.
var LabelSection = &file.Section{Number: 1, Kind: 1, Name: "labels", Form: file.RankEntries, Needed: func(m *file.Meta) bool { return m.Labels }}

// labelPage collects the label sets of consecutive ranks of one tenant. Each is coded against the one before:
// neighbours in key order share name, job and target, and so most bytes before and after the difference.
type labelPage struct {
	rank0    uint32
	count    int
	last     []byte
	buf      []byte
	restarts []uint32
}

func (p *labelPage) add(rank uint32, l model.Labels) {
	if p.count == 0 {
		p.rank0 = rank
		p.buf, p.restarts = p.buf[:0], p.restarts[:0]
	}
	if p.count%restartRanks == 0 {
		p.restarts = append(p.restarts, uint32(len(p.buf)))
		p.last = p.last[:0]
	}
	p.buf, p.last = AppendLabelSet(p.buf, p.last, l)
	p.count++
}

// AppendLabelSet codes a label set against the one before. It returns a copy of the set in the memory of that
// one.
func AppendLabelSet(dst, last []byte, l model.Labels) (out, set []byte) {
	prefix := commonPrefix(last, l)
	suffix := commonSuffix(last[prefix:], l[prefix:])
	dst = binary.AppendUvarint(dst, uint64(prefix))
	dst = binary.AppendUvarint(dst, uint64(suffix))
	dst = column.AppendBytes(dst, l[prefix:len(l)-suffix])
	return dst, append(last[:0], l...)
}

func (p *labelPage) full(size int) bool { return p.count >= maxPageLabels || len(p.buf) >= size }

// payload appends: first rank, number, offsets of the whole sets, sets.
func (p *labelPage) payload(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.rank0))
	dst = binary.AppendUvarint(dst, uint64(p.count))
	for _, off := range p.restarts {
		dst = binary.LittleEndian.AppendUint32(dst, off)
	}
	return append(dst, p.buf...)
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n && binary.LittleEndian.Uint64(a[i:]) == binary.LittleEndian.Uint64(b[i:]); i += 8 {
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

func commonSuffix(a, b []byte) int {
	n := min(len(a), len(b))
	a, b = a[len(a)-n:], b[len(b)-n:]
	i := n
	for ; i >= 8 && binary.LittleEndian.Uint64(a[i-8:]) == binary.LittleEndian.Uint64(b[i-8:]); i -= 8 {
	}
	for i > 0 && a[i-1] == b[i-1] {
		i--
	}
	return n - i
}

// labelWriter writes the label sets of series.
type labelWriter struct {
	w    *file.Writer
	page labelPage
}

// NewLabelWriter returns the writer of the section, which writes nothing unless the part has labels.
func NewLabelWriter(w *file.Writer) file.Hooks {
	if !w.Meta().Labels {
		return file.Hooks{}
	}
	p := &labelWriter{w: w}
	return file.Hooks{BeginSeries: p.begin, EndTenant: p.flush}
}

func (p *labelWriter) begin(_ model.Key, l model.Labels) error {
	p.page.add(p.w.Rank(), l)
	if p.page.full(p.w.Sizes.PageBytes) {
		return p.flush()
	}
	return nil
}

func (p *labelWriter) flush() error {
	if p.page.count == 0 {
		return nil
	}
	p.w.Payload = p.page.payload(p.w.Payload[:0])
	e := file.Entry{Rank0: p.page.rank0, Ranks: uint32(p.page.count)}
	p.page.count = 0
	return p.w.AddPage(LabelSection, p.w.TextCodec(), e)
}

// LabelDir walks the label sets of a decoded page.
type LabelDir struct {
	rank0    uint32
	count    int
	restarts []byte
	sets     []byte

	next   int // the set that follows
	rest   column.Scan
	labels []byte
}

func (d *LabelDir) decode(payload []byte) error {
	s := column.Scan{Rest: payload}
	d.rank0 = uint32(s.Below(1<<32 - 1))
	d.count = s.Below(maxPageLabels)
	d.restarts = s.Next(4 * uint64((d.count+restartRanks-1)/restartRanks))
	if d.labels == nil {
		// The empty set is not nil, which would mean that the part has no labels.
		d.labels = make([]byte, 0, 512)
	}
	d.sets, d.next, d.labels = s.Rest, 0, d.labels[:0]
	d.rest = column.Scan{Rest: d.sets}
	if s.Bad || d.count == 0 {
		d.count = 0
		return column.Corrupt("page of labels: no header")
	}
	return nil
}

// seek makes i the current set.
func (d *LabelDir) seek(i int) error {
	if i+1 < d.next || i/restartRanks > (d.next-1)/restartRanks || d.next == 0 {
		from := binary.LittleEndian.Uint32(d.restarts[i/restartRanks*4:])
		if uint64(from) > uint64(len(d.sets)) {
			return column.Corrupt("page of labels: a set begins beyond the page")
		}
		d.rest = column.Scan{Rest: d.sets[from:]}
		d.next = i / restartRanks * restartRanks
	}
	for d.next <= i {
		if err := d.step(); err != nil {
			return err
		}
	}
	return nil
}

func (d *LabelDir) step() error {
	whole := d.next%restartRanks == 0
	prefix, suffix := d.rest.Uvarint(), d.rest.Uvarint()
	middle := d.rest.Bytes()
	if whole {
		d.labels = d.labels[:0]
	}
	n := uint64(len(d.labels))
	if d.rest.Bad || prefix > n || suffix > n-prefix {
		d.next = 0
		return column.Corrupt("labels: a set does not fit the one before")
	}
	if suffix == 0 {
		d.labels = append(d.labels[:prefix], middle...)
	} else {
		d.splice(int(prefix), int(suffix), middle)
	}
	d.next++
	return nil
}

// Read reads the next of consecutive label sets, of which only the first is whole. It is valid until the next
// call.
func (d *LabelDir) Read(s *column.Scan, first bool) (model.Labels, error) {
	d.rest, d.next = *s, 1
	if first {
		d.next = 0
	}
	err := d.step()
	*s = d.rest
	return model.Labels(d.labels), err
}

// splice replaces the bytes between prefix and suffix.
func (d *LabelDir) splice(prefix, suffix int, middle []byte) {
	n := prefix + len(middle) + suffix
	from := len(d.labels) - suffix
	if n > len(d.labels) {
		d.labels = column.Grow(d.labels, n-len(d.labels))
	}
	copy(d.labels[n-suffix:n], d.labels[from:from+suffix])
	copy(d.labels[prefix:], middle)
	d.labels = d.labels[:n]
}
