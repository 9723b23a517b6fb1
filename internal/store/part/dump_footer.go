package part

import (
	"fmt"
	"io"

	"github.com/shaledb/shale/internal/model"
)

// dumpFooter shows the payload of a footer.
func dumpFooter(a *annotator, r *fileReader, sections sectionList) {
	a.raw(8, fmt.Sprintf("seed %016x", uint64(r.Meta().Seed)))
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
	for _, s := range sections {
		dumpSection(a, s)
		n := a.uvarint(fmt.Sprintf("index pages of %s", s))
		dumpEntries(a, s, n, r.footerOff)
	}
	a.end()
}

// dumpEnvelope shows what lies around the payload of a page; the payload itself only if it is stored as it is shown below.
func dumpEnvelope(w io.Writer, off int64, stored []byte) {
	if len(stored) < envelopeMin {
		showBytes(w, "", off, stored, "too short for a page")
		return
	}
	s := scan{b: stored[:len(stored)-crcBytes]}
	codec := s.byte()
	n := len(s.b)
	raw := s.uvarint()
	if s.bad {
		showBytes(w, "", off, stored, "no length")
		return
	}
	name := [...]string{"none", "s2", "zstd", "lines", "unknown"}[min(codec, 4)]
	showBytes(w, "", off, stored[:1], "codec %s", name)
	showBytes(w, "", off+1, stored[1:1+n-len(s.b)], "raw length %d", raw)
	if begin := len(stored) - crcBytes - len(s.b); codec == codecNone {
		showBytes(w, "", off+int64(begin), nil, "payload, %d bytes, see below", len(s.b))
	} else {
		showBytes(w, "", off+int64(begin), s.b, "payload, compressed, see below")
	}
	showBytes(w, "", off+int64(len(stored)-crcBytes), stored[len(stored)-crcBytes:], "crc32c")
}

// dumpIndex shows the payload of an index page.
func dumpIndex(a *annotator, s *section, size int64) {
	dumpSection(a, s)
	n := a.uvarint("entries")
	for i := uint64(0); i < n && !a.s.bad; i += indexRun {
		a.raw(4, fmt.Sprintf("where entries up to %d end", min(i+indexRun, n)-1))
	}
	for i := uint64(0); i < n && !a.s.bad; i += indexRun {
		dumpEntries(a, s, min(indexRun, n-i), size)
	}
}

func dumpSection(a *annotator, s *section) {
	a.show(func() string { return fmt.Sprintf("section %d: %s", a.s.byte(), s) })
	a.show(func() string { return fmt.Sprintf("family %d", a.s.byte()) })
}

func dumpEntries(a *annotator, s *section, n uint64, size int64) {
	var c entryCoder
	for i := uint64(0); i < n && !a.s.bad; i++ {
		a.show(func() string {
			e := c.read(&a.s, s, size)
			place := fmt.Sprintf("[%d, %d)", e.addr.Off, e.addr.Off+int64(e.addr.Len))
			switch {
			case s.form == pairEntries:
				return fmt.Sprintf("%s: tenant %d from %q=%q", place, e.tenant, e.name, e.value)
			case s.form == keyEntries:
				return fmt.Sprintf("%s: ranks %d..%d from key %s", place, e.rank0, e.last(), e.key)
			case s.form == unitEntries && e.text.lines > 0 && e.text.filter.Len > 0:
				return fmt.Sprintf("%s: ranks %d..%d, %d rows in [%d, %d]; %d bytes of lines in [%d, %d); filter %d in [%d, %d)", place, e.rank0, e.last(), e.rows,
					e.times.Min, e.times.Max, e.text.bytes, e.linesAddr().Off, e.end(), e.text.number, e.text.filter.Off, e.text.filter.Off+int64(e.text.filter.Len))
			case s.form == unitEntries:
				return fmt.Sprintf("%s: ranks %d..%d, %d rows in [%d, %d]; %d bytes of lines in the next %d", place, e.rank0, e.last(), e.rows,
					e.times.Min, e.times.Max, e.text.bytes, e.text.lines)
			case s.rows():
				return fmt.Sprintf("%s: ranks %d..%d, %d rows in [%d, %d]", place, e.rank0, e.last(), e.rows, e.times.Min, e.times.Max)
			}
			return fmt.Sprintf("%s: ranks %d..%d", place, e.rank0, e.last())
		})
	}
}
