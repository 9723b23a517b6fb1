package part

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Filters are looked at many at a time and for few items each, so their bits lie across: first a page with the heads of some
// hundred filters, then slices, pages of which each has the same parts of all of these filters. Who looks for an item reads the
// heads and one slice, a small part of what the filters take. Classes that are not divided stand with the heads, and if the filters
// are few, all of them do, and there are no slices.
const (
	// filterBytes is how many bytes of filters a writer holds, which then make a page and its slices. A merge holds as many for
	// each part that it reads.
	filterBytes = 2 << 20
	// sliceBytes is about how long a slice is, if the filters are many.
	sliceBytes = 32 << 10
	// wholeBytes is how many bytes a page has of classes that are not divided, when no more filters go to it: who asks one filter
	// reads them all.
	wholeBytes = 128 << 10
)

// together returns how many of the filters make a page, and how many slices that has: 0, or a power of two up to filterParts.
func together(filters []byte, begin uint32, ends []uint32, slice int) (n, slices int) {
	divided, whole := 0, 0
	eachFilter(filters, begin, ends[:min(len(ends), maxFilters)], func(f *itemFilter) {
		if whole > wholeBytes {
			return
		}
		n++
		for _, bits := range f.bits {
			if partsOf(len(bits)) > 1 {
				divided += len(bits)
			} else {
				whole += len(bits)
			}
		}
	})
	if divided > slice {
		slices = min(1<<bits.Len(uint((divided-1)/slice)), filterParts)
	}
	return n, slices
}

// appendFilterPage makes the payload of a page of the filters of which each ends where ends says, counted from begin.
func appendFilterPage(dst, filters []byte, begin uint32, ends []uint32, slices int) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(ends)))
	dst = append(dst, byte(slices))
	length := 0
	var whole []byte
	heads := make([]byte, 0, 16*len(ends))
	eachFilter(filters, begin, ends, func(f *itemFilter) {
		heads = f.append(heads)
		for class := range itemClasses {
			if n := len(f.bits[class]); slices > 0 && partsOf(n) > 1 {
				length += n / slices
			} else {
				whole = append(whole, f.bits[class]...)
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
	eachFilter(filters, begin, ends, func(f *itemFilter) {
		for class := range itemClasses {
			if n := len(f.bits[class]); partsOf(n) > 1 {
				dst = append(dst, f.bits[class][n/slices*slice:][:n/slices]...)
			}
		}
	})
	return dst
}

// eachFilter calls fn with filters that a writer has made or verified.
func eachFilter(filters []byte, begin uint32, ends []uint32, fn func(*itemFilter)) {
	var f itemFilter
	for _, end := range ends {
		if err := f.open(filters[begin:end]); err != nil {
			panic(err)
		}
		fn(&f)
		begin = end
	}
}

// filterPage is the page of the heads of filters.
type filterPage struct {
	addr    Addr
	slices  int
	length  int // of the payload of a slice
	payload []byte
	filters []placed
	sliced  [itemClasses]bool // a filter has bits of the class in the slices
}

// placed says where a filter is. Of a class that is divided, at counts from the beginning of a slice, else from that of the
// payload.
type placed struct {
	filterHead
	at [itemClasses]uint32
}

func (p *filterPage) open(payload []byte, a Addr) error {
	s := scan{b: payload}
	*p = filterPage{addr: a, payload: payload, filters: p.filters[:0]}
	n := s.below(maxFilters)
	if p.slices = int(s.byte()); p.slices > filterParts || p.slices&(p.slices-1) != 0 {
		s.fail()
	}
	if p.slices > 0 {
		p.length = s.below(maxPageBytes)
	}
	for range n {
		var f placed
		if f.scan(&s); s.bad {
			break
		}
		p.filters = append(p.filters, f)
	}
	whole, slice := uint64(len(payload)-len(s.b)), uint64(0)
	begin := whole
	for i := range p.filters {
		f := &p.filters[i]
		for class, n := range f.lens {
			if p.divided(n) {
				p.sliced[class], f.at[class] = true, uint32(slice)
				slice += uint64(n) / uint64(p.slices)
			} else {
				f.at[class] = uint32(whole)
				whole += uint64(n)
			}
			if whole > maxPageBytes || slice > maxPageBytes {
				return corrupt("page of filters of more than %d bytes", maxPageBytes)
			}
		}
	}
	s.take(whole - begin)
	if err := s.end("page of filters"); err != nil {
		return err
	}
	if slice != uint64(p.length) {
		return corrupt("slices of %d bytes, of filters that have %d there", p.length, slice)
	}
	return nil
}

// divided reports whether a class of so many bytes stands in the slices.
func (p *filterPage) divided(bytes uint32) bool { return p.slices > 0 && partsOf(int(bytes)) > 1 }

// slice returns the address of a slice: all are as long as each other, and stored as they are.
func (p *filterPage) slice(i int) Addr {
	n := 1 + uvarintLen(p.length) + p.length + crcBytes
	return Addr{Off: p.addr.Off + int64(p.addr.Len) + int64(i)*int64(n), Len: uint32(n)}
}

// sliceAddrs returns the addresses of the slices of a page of filters.
func sliceAddrs(ctx context.Context, pages Pages, a Addr) ([]Addr, error) {
	var p filterPage
	payload, err := pages.Page(ctx, a)
	if err == nil {
		err = p.open(payload, a)
	}
	if err != nil {
		return nil, fmt.Errorf("part: filters: %w", err)
	}
	var addrs []Addr
	for i := range p.slices {
		addrs = append(addrs, p.slice(i))
	}
	return addrs, nil
}

// readSlice returns the payload of a slice.
func (p *filterPage) readSlice(ctx context.Context, pages Pages, i int) ([]byte, error) {
	slice, err := pages.Page(ctx, p.slice(i))
	if err == nil && len(slice) != p.length {
		err = corrupt("slice of %d bytes, of which the filters have %d", len(slice), p.length)
	}
	if err != nil {
		return nil, fmt.Errorf("part: filters: slice %d: %w", i, err)
	}
	return slice, nil
}

// sliceOf returns in which slice an item is, if its class is divided.
func (p *filterPage) sliceOf(item uint64) int { return partOf(item) * p.slices / filterParts }

// has reports whether a filter may have an item. The slice of the item counts if the class is divided; without it, the filter may.
func (p *filterPage) has(i int, class byte, item uint64, slice []byte) bool {
	f := &p.filters[i]
	if f.classes>>class&1 == 0 {
		return true
	}
	n, from := int(f.lens[class]), p.payload
	part := 0
	size := n / partsOf(n)
	switch {
	case p.divided(f.lens[class]):
		if slice == nil {
			return true
		}
		from, part = slice, partOf(item)%(filterParts/p.slices)
	case size < n:
		part = partOf(item)
	}
	return hasItem(from[int(f.at[class])+part*size:][:size], item, f.hashes[class])
}

// appendFilter appends a filter as it is by itself. The slices are needed if there are any.
func (p *filterPage) appendFilter(dst []byte, i uint32, slices [][]byte) ([]byte, error) {
	if int(i) >= len(p.filters) {
		return dst, corrupt("page of filters has no filter %d", i)
	}
	f := &p.filters[i]
	dst = f.append(dst)
	for class, n := range f.lens {
		at := f.at[class]
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

// wholeFilters gives filters as they are by themselves, one after the other, and holds a page of them with all of its slices.
type wholeFilters struct {
	page   filterPage
	bits   []byte // of all slices
	slices [][]byte
	filter []byte
}

// of returns the filter of a unit that has one. It is valid until the next call.
func (w *wholeFilters) of(ctx context.Context, pages Pages, e *pageEntry) ([]byte, error) {
	if a := e.text.filter; w.page.addr != a {
		w.page.addr, w.bits, w.slices = Addr{}, w.bits[:0], w.slices[:0]
		payload, err := pages.Page(ctx, a)
		if err != nil {
			return nil, fmt.Errorf("part: filters: %w", err)
		}
		var page filterPage
		if err := page.open(payload, a); err != nil {
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
	w.filter, err = w.page.appendFilter(w.filter[:0], e.text.number, w.slices)
	return w.filter, err
}
