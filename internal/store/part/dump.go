package part

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// Dump writes every byte of the part with its meaning: first the stored bytes of header, page envelopes and tail at their
// offsets in the file, and below each page its payload, decompressed, at offsets in the payload. A page that cannot be
// read is noted with its error, and the dump goes on.
func Dump(ctx context.Context, w io.Writer, r *Reader) error {
	out := bufio.NewWriter(w)
	d := dumper{ctx: ctx, r: r, w: out}
	if err := d.part(); err != nil {
		return err
	}
	return out.Flush()
}

type dumper struct {
	ctx context.Context
	r   *Reader
	w   *bufio.Writer
}

type dumpPage struct {
	addr    Addr
	section section
	kind    string // "" is a page of the section
}

// Pages that are not of the section itself.
const (
	dumpIndexPage  = "index page"
	dumpLinesPage  = "lines"
	dumpFilterPage = "filters"
	dumpSlicePage  = "a slice of filters"
)

func (d *dumper) part() error {
	r := d.r
	fmt.Fprintf(d.w, "part of %d bytes, format version %d\n", r.size, formatVersion)
	pages, err := d.pages()
	if err != nil {
		return err
	}
	head, err := r.read(d.ctx, 0, headerBytes)
	if err != nil {
		return err
	}
	d.bytes("", 0, head, "header %q", head)
	for i := range pages {
		if err := d.page(&pages[i]); err != nil {
			return err
		}
	}
	n := r.size - tailBytes - r.footerOff
	stored, err := r.read(d.ctx, r.footerOff, n)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.w, "\nfooter at %d\n", r.footerOff)
	d.envelope(r.footerOff, stored)
	payload, err := openPage(stored, maxFooterBytes)
	if err != nil {
		return err
	}
	d.footer(newAnnotator(d, payload))
	tail, err := r.read(d.ctx, r.size-tailBytes, tailBytes)
	if err != nil {
		return err
	}
	at := r.size - tailBytes
	fmt.Fprintf(d.w, "\ntail at %d\n", at)
	d.bytes("", at, tail[:4], "length of the stored footer: %d", n)
	d.bytes("", at+4, tail[4:8], "version %d", formatVersion)
	d.bytes("", at+8, tail[8:12], "crc32c of the eight bytes before")
	d.bytes("", at+12, tail[12:], "magic %q", tail[12:])
	return nil
}

// pages lists all pages in the order of their offsets, without those that a corrupt index page would name.
func (d *dumper) pages() ([]dumpPage, error) {
	var pages []dumpPage
	filters := map[Addr]bool{}
	for s := range sections {
		for i := range d.r.footer.index[s] {
			pages = append(pages, dumpPage{d.r.footer.index[s][i].addr, s, dumpIndexPage})
			entries, err := d.r.indexPage(d.ctx, nil, s, i)
			switch {
			case errors.Is(err, model.ErrCorrupt):
				fmt.Fprintf(d.w, "index page of %s: %v\n", s, err)
				continue
			case err != nil:
				return nil, err
			}
			for k := range entries {
				e := &entries[k]
				if pages = append(pages, dumpPage{e.addr, s, ""}); e.text.lines > 0 {
					pages = append(pages, dumpPage{e.linesAddr(), s, dumpLinesPage})
				}
				if f := e.text.filter; f.Len > 0 && !filters[f] {
					filters[f] = true
					kind := dumpFilterPage
					places, err := appendFilterAddrs(d.ctx, nil, d.r.pages, f)
					if err != nil {
						places = []Addr{f} // which will show what is wrong
					}
					for _, a := range places {
						pages = append(pages, dumpPage{a, s, kind})
						kind = dumpSlicePage
					}
				}
			}
		}
	}
	slices.SortFunc(pages, func(a, b dumpPage) int { return int(min(max(a.addr.Off-b.addr.Off, -1), 1)) })
	return pages, nil
}

func (d *dumper) page(p *dumpPage) error {
	switch p.kind {
	case "":
		fmt.Fprintf(d.w, "\npage of %s at %d\n", p.section, p.addr.Off)
	case dumpIndexPage:
		fmt.Fprintf(d.w, "\nindex page of %s at %d\n", p.section, p.addr.Off)
	default:
		fmt.Fprintf(d.w, "\npage of %s at %d\n", p.kind, p.addr.Off)
	}
	stored, err := d.r.read(d.ctx, p.addr.Off, int64(p.addr.Len))
	if err != nil {
		return err
	}
	d.envelope(p.addr.Off, stored)
	if len(stored) > envelopeMin && stored[0] == codecLines {
		d.fields(stored)
	}
	payload, err := DecodePage(stored)
	if err != nil {
		fmt.Fprintf(d.w, "  %v\n", err)
		return nil
	}
	a := newAnnotator(d, payload)
	switch {
	case p.kind == dumpIndexPage:
		dumpIndex(a, p.section, d.r.footerOff)
	case p.section == keySection:
		dumpKeys(a)
	case p.section == labelSection:
		dumpLabels(a)
	case p.section == postingSection:
		dumpPostings(a)
	case p.section == exemplarSection:
		dumpExemplars(a)
	case p.section == windowSection:
		dumpMasks(a)
	case p.kind == dumpLinesPage:
		a.raw(uint64(len(payload)), "lines")
	case p.kind == dumpFilterPage:
		dumpFilters(a)
	case p.kind == dumpSlicePage:
		a.raw(uint64(len(payload)), "bits")
	case p.section == textSection:
		dumpText(a)
	default:
		dumpSamples(a)
	}
	a.end()
	return nil
}

// envelope shows what lies around the payload of a page; the payload itself only if it is stored as it is shown below.
func (d *dumper) envelope(off int64, stored []byte) {
	if len(stored) < envelopeMin {
		d.bytes("", off, stored, "too short for a page")
		return
	}
	s := scan{b: stored[:len(stored)-crcBytes]}
	codec := s.byte()
	n := len(s.b)
	raw := s.uvarint()
	if s.bad {
		d.bytes("", off, stored, "no length")
		return
	}
	name := [...]string{"none", "s2", "zstd", "lines", "unknown"}[min(codec, 4)]
	d.bytes("", off, stored[:1], "codec %s", name)
	d.bytes("", off+1, stored[1:1+n-len(s.b)], "raw length %d", raw)
	if begin := len(stored) - crcBytes - len(s.b); codec == codecNone {
		d.bytes("", off+int64(begin), nil, "payload, %d bytes, see below", len(s.b))
	} else {
		d.bytes("", off+int64(begin), s.b, "payload, compressed, see below")
	}
	d.bytes("", off+int64(len(stored)-crcBytes), stored[len(stored)-crcBytes:], "crc32c")
}

// bytes writes bytes at an offset, 12 a line, with their meaning on the first.
func (d *dumper) bytes(indent string, off int64, b []byte, format string, args ...any) {
	const perLine = 12
	meaning := fmt.Sprintf(format, args...)
	for first := true; first || len(b) > 0; first = false {
		n := min(len(b), perLine)
		fmt.Fprintf(d.w, "%s%06d: %-36s%s\n", indent, off, fmt.Sprintf("% x", b[:n]), prefixed(first, meaning))
		b, off = b[n:], off+int64(n)
	}
}

func prefixed(first bool, meaning string) string {
	if !first {
		return "."
	}
	return "# " + meaning
}

// annotator is a scan that shows what it reads.
type annotator struct {
	d       *dumper
	payload []byte
	s       scan
	ints    intDecoder
	values  valueDecoder
}

func newAnnotator(d *dumper, payload []byte) *annotator {
	return &annotator{d: d, payload: payload, s: scan{b: payload}}
}

// show runs read and shows what it consumed, with what it returns.
func (a *annotator) show(read func() string) {
	before := len(a.payload) - len(a.s.b)
	if a.s.bad {
		return
	}
	meaning := read()
	if a.s.bad {
		fmt.Fprintf(a.d.w, "  %06d: %s: cut short or out of bounds\n", before, meaning)
		return
	}
	a.d.bytes("  ", int64(before), a.payload[before:len(a.payload)-len(a.s.b)], "%s", meaning)
}

func (a *annotator) uvarint(what string) (v uint64) {
	a.show(func() string { v = a.s.uvarint(); return fmt.Sprintf("%s: %d", what, v) })
	return v
}

func (a *annotator) varint(what string) (v int64) {
	a.show(func() string { v = a.s.varint(); return fmt.Sprintf("%s: %d", what, v) })
	return v
}

func (a *annotator) text(what string) {
	a.show(func() string { return fmt.Sprintf("%s: %q", what, a.s.bytes()) })
}

func (a *annotator) raw(n uint64, what string) []byte {
	var b []byte
	a.show(func() string { b = a.s.take(n); return what })
	return b
}

// column shows a column of n integers.
func (a *annotator) column(n int, what string) (xs []int64) {
	if n == 0 {
		return nil
	}
	a.show(func() string {
		kind := a.s.b
		xs = a.ints.append(nil, &a.s, n)
		return fmt.Sprintf("%s: %s: %s", what, intsName(kind), few(xs))
	})
	return xs
}

func intsName(b []byte) string {
	if len(b) == 0 {
		return "nothing"
	}
	name := [...]string{"const", "runs", "packed", "steps"}[b[0]&intsKind]
	for _, f := range []struct {
		bit  byte
		name string
	}{{intsDelta, "delta"}, {intsDivisor, "divisor"}, {intsExceptions, "exceptions"}, {intsRadix, "radix"}} {
		if b[0]&f.bit != 0 {
			name += "+" + f.name
		}
	}
	return name
}

// few spells out the first elements of a slice.
func few[T any](xs []T) string {
	const most = 6
	if len(xs) <= most {
		return fmt.Sprintf("%v", xs)
	}
	return fmt.Sprintf("%v and %d more", xs[:most], len(xs)-most)
}

// end tells of bytes that were not read, or missing.
func (a *annotator) end() {
	if err := a.s.end("page"); err != nil {
		fmt.Fprintf(a.d.w, "  %v\n", err)
	}
}

func (d *dumper) footer(a *annotator) {
	a.raw(8, fmt.Sprintf("seed %016x", uint64(d.r.Meta().Seed)))
	a.show(func() string { return "signal: " + model.Signal(a.s.byte()).String() })
	flags := a.uvarint("flags (1: has labels, 2: has windows)")
	sources := a.uvarint("sources")
	for i := uint64(0); i < sources && !a.s.bad; i++ {
		a.text("node")
		a.uvarint("epoch of its journal")
		a.uvarint("first sequence number")
		a.uvarint("last sequence number")
	}
	a.varint("created")
	if flags&footerWindows != 0 {
		a.varint("start of the windows")
		a.uvarint("length of a window")
		a.uvarint("windows")
	}
	n := a.uvarint("tenants")
	for i := uint64(0); i < n && !a.s.bad; i++ {
		a.text("tenant")
		a.uvarint("series")
		rows := a.uvarint("samples") | a.uvarint("exemplars") | a.uvarint("lines")
		if a.uvarint("bytes of lines"); rows != 0 {
			a.varint("first time")
			a.uvarint("last time, less the first")
		}
	}
	a.uvarint("sections")
	for s := range sections {
		dumpSection(a, s)
		n := a.uvarint(fmt.Sprintf("index pages of %s", s))
		dumpEntries(a, s, n, d.r.footerOff)
	}
	a.end()
}
