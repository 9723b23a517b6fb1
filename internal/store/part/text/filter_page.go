package text

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
)

// A query asks many filters for a few items each, so their bits are stored across: first a page with the
// heads of about a hundred filters, then slices. A slice is a page that has the same parts of all these
// filters. To look for an item, a query reads the heads and one slice, a small part of the filters. Classes
// that are not divided are in the page of the heads; if the filters are few, all classes are, and there are
// no slices.
const (
	// FilterBytes is how many bytes of filters a writer holds, which then make a page and its slices. A merge
	// holds as many for each part that it reads.
	FilterBytes = 2 << 20
	// SliceBytes is about how long a slice is, if the filters are many.
	SliceBytes = 32 << 10
	// wholeBytes is how many bytes a page has of classes that are not divided, at which no more filters are
	// added: to ask one filter is to read them all.
	wholeBytes = 128 << 10
)

// together returns how many of the filters make a page, and how many slices that has: 0, or a power of two up
// to filterParts.
func together(filters []byte, begin uint32, ends []uint32, slice int) (n, slices int) {
	divided, whole := 0, 0
	eachFilter(filters, begin, ends[:min(len(ends), file.MaxFilters)], func(f *lines.Filter) {
		if whole > wholeBytes {
			return
		}
		n++
		for _, bits := range f.Bits {
			if lines.PartsOf(len(bits)) > 1 {
				divided += len(bits)
			} else {
				whole += len(bits)
			}
		}
	})
	if divided > slice {
		slices = min(1<<bits.Len(uint((divided-1)/slice)), lines.FilterParts)
	}
	return n, slices
}

// appendFilterPage makes the payload of a page of the filters of which each ends where ends says, counted
// from begin.
func appendFilterPage(dst, filters []byte, begin uint32, ends []uint32, slices int) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(ends)))
	dst = append(dst, byte(slices))
	length := 0
	var whole []byte
	heads := make([]byte, 0, 16*len(ends))
	eachFilter(filters, begin, ends, func(f *lines.Filter) {
		heads = f.Append(heads)
		for class := range lines.ItemClasses {
			if n := len(f.Bits[class]); slices > 0 && lines.PartsOf(n) > 1 {
				length += n / slices
			} else {
				whole = append(whole, f.Bits[class]...)
			}
		}
	})
	if slices > 0 {
		dst = binary.AppendUvarint(dst, uint64(length))
	}
	return append(append(dst, heads...), whole...)
}

// appendSlice makes the payload of a slice of them.
func appendSlice(dst, filters []byte, begin uint32, ends []uint32, slices, slice int) []byte {
	eachFilter(filters, begin, ends, func(f *lines.Filter) {
		for class := range lines.ItemClasses {
			if n := len(f.Bits[class]); lines.PartsOf(n) > 1 {
				dst = append(dst, f.Bits[class][n/slices*slice:][:n/slices]...)
			}
		}
	})
	return dst
}

// eachFilter calls fn with filters that a writer has made or verified.
func eachFilter(filters []byte, begin uint32, ends []uint32, fn func(*lines.Filter)) {
	var f lines.Filter
	for _, end := range ends {
		if err := f.Open(filters[begin:end]); err != nil {
			panic(err)
		}
		fn(&f)
		begin = end
	}
}

// filterPage is the page of the heads of filters.
type filterPage struct {
	addr    file.Addr
	slices  int
	length  int // of the payload of a slice
	payload []byte
	filters []storedFilter
	sliced  [lines.ItemClasses]bool // a filter has bits of the class in the slices
}

// storedFilter is a filter in a page. Offsets of divided classes count from the beginning of a slice, the
// others from that of the payload.
type storedFilter struct {
	lines.FilterHead
	offsets [lines.ItemClasses]uint32
}

func (p *filterPage) decode(payload []byte, a file.Addr) error {
	s := column.Scan{Rest: payload}
	*p = filterPage{addr: a, payload: payload, filters: p.filters[:0]}
	n := s.Below(file.MaxFilters)
	if p.slices = int(s.Byte()); p.slices > lines.FilterParts || p.slices&(p.slices-1) != 0 {
		s.Fail()
	}
	if p.slices > 0 {
		p.length = s.Below(file.MaxPageBytes)
	}
	for range n {
		var f storedFilter
		if f.Read(&s); s.Bad {
			break
		}
		p.filters = append(p.filters, f)
	}
	whole, slice := uint64(len(payload)-len(s.Rest)), uint64(0)
	begin := whole
	for i := range p.filters {
		f := &p.filters[i]
		for class, n := range f.Lens {
			if p.divided(n) {
				p.sliced[class], f.offsets[class] = true, uint32(slice)
				slice += uint64(n) / uint64(p.slices)
			} else {
				f.offsets[class] = uint32(whole)
				whole += uint64(n)
			}
			if whole > file.MaxPageBytes || slice > file.MaxPageBytes {
				return column.Corrupt("page of filters of more than %d bytes", file.MaxPageBytes)
			}
		}
	}
	s.Next(whole - begin)
	if err := s.End("page of filters"); err != nil {
		return err
	}
	if slice != uint64(p.length) {
		return column.Corrupt("slices of %d bytes, of filters that have %d there", p.length, slice)
	}
	return nil
}

// divided reports whether a class of so many bytes stands in the slices.
func (p *filterPage) divided(bytes uint32) bool { return p.slices > 0 && lines.PartsOf(int(bytes)) > 1 }

// slice returns the address of a slice: all are as long as each other, and stored as they are.
func (p *filterPage) slice(i int) file.Addr {
	n := 1 + uvarintLen(p.length) + p.length + file.ChecksumBytes
	return file.Addr{Off: p.addr.Off + int64(p.addr.Len) + int64(i)*int64(n), Len: uint32(n)}
}

// sliceAddrs returns the addresses of the slices of a page of filters.
func sliceAddrs(ctx context.Context, pages file.Pages, a file.Addr) ([]file.Addr, error) {
	var p filterPage
	payload, err := pages.Page(ctx, a)
	if err == nil {
		err = p.decode(payload, a)
	}
	if err != nil {
		return nil, fmt.Errorf("part: filters: %w", err)
	}
	var addrs []file.Addr
	for i := range p.slices {
		addrs = append(addrs, p.slice(i))
	}
	return addrs, nil
}

// readSlice returns the payload of a slice.
func (p *filterPage) readSlice(ctx context.Context, pages file.Pages, i int) ([]byte, error) {
	slice, err := pages.Page(ctx, p.slice(i))
	if err == nil && len(slice) != p.length {
		err = column.Corrupt("slice of %d bytes, of which the filters have %d", len(slice), p.length)
	}
	if err != nil {
		return nil, fmt.Errorf("part: filters: slice %d: %w", i, err)
	}
	return slice, nil
}

// sliceOf returns in which slice an item is, if its class is divided.
func (p *filterPage) sliceOf(item uint64) int {
	return lines.PartOf(item) * p.slices / lines.FilterParts
}

// has reports whether a filter may have an item. The slice of the item counts if the class is divided;
// without it, the filter may.
func (p *filterPage) has(i int, class byte, item uint64, slice []byte) bool {
	f := &p.filters[i]
	if f.Classes>>class&1 == 0 {
		return true
	}
	n, from := int(f.Lens[class]), p.payload
	part := 0
	size := n / lines.PartsOf(n)
	switch {
	case p.divided(f.Lens[class]):
		if slice == nil {
			return true
		}
		from, part = slice, lines.PartOf(item)%(lines.FilterParts/p.slices)
	case size < n:
		part = lines.PartOf(item)
	}
	return lines.HasItem(from[int(f.offsets[class])+part*size:][:size], item, f.Hashes[class])
}

// appendFilter appends a filter as it is by itself. The slices are needed if there are any.
func (p *filterPage) appendFilter(dst []byte, i uint32, slices [][]byte) ([]byte, error) {
	if int(i) >= len(p.filters) {
		return dst, column.Corrupt("page of filters has no filter %d", i)
	}
	f := &p.filters[i]
	dst = f.Append(dst)
	for class, n := range f.Lens {
		at := f.offsets[class]
		if !p.divided(n) {
			dst = append(dst, p.payload[at:at+n]...)
			continue
		}
		part := n / uint32(p.slices)
		for _, s := range slices {
			dst = append(dst, s[at:at+part]...)
		}
	}
	return dst, nil
}

// wholeFilters gives filters as they are by themselves, one after the other, and holds a page of them with
// all of its slices.
type wholeFilters struct {
	page   filterPage
	bits   []byte // of all slices
	slices [][]byte
	filter []byte
}

// read returns the filter of a unit that has one. It is valid until the next call.
func (w *wholeFilters) read(ctx context.Context, pages file.Pages, e *file.Entry) ([]byte, error) {
	if a := e.Text.Filter; w.page.addr != a {
		w.page.addr, w.bits, w.slices = file.Addr{}, w.bits[:0], w.slices[:0]
		payload, err := pages.Page(ctx, a)
		if err != nil {
			return nil, fmt.Errorf("part: filters: %w", err)
		}
		var page filterPage
		if err := page.decode(payload, a); err != nil {
			return nil, fmt.Errorf("page at %d: %w", a.Off, err)
		}
		for i := range page.slices {
			slice, err := page.readSlice(ctx, pages, i)
			if err != nil {
				return nil, err
			}
			// A copy, since the payload may be part of something larger, which would be held too.
			w.bits = append(w.bits, slice...)
		}
		for i := range page.slices {
			w.slices = append(w.slices, w.bits[i*page.length:][:page.length])
		}
		w.page = page
	}
	var err error
	w.filter, err = w.page.appendFilter(w.filter[:0], e.Text.Number, w.slices)
	return w.filter, err
}
