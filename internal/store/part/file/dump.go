package file

import (
	"fmt"
	"io"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
)

// DumpFooter shows the payload of a footer.
func DumpFooter(a *Annotator, r *Reader, sections Sections) {
	a.Raw(8, fmt.Sprintf("seed %016x", uint64(r.Meta().Seed)))
	a.Show(func() string { return "signal: " + model.Signal(a.Scan.Byte()).String() })
	flags := a.Uvarint("flags (1: has labels, 2: has windows)")
	sources := a.Uvarint("sources")
	for i := uint64(0); i < sources && !a.Scan.Bad; i++ {
		a.Text("node")
		a.Uvarint("epoch of its journal")
		a.Uvarint("first sequence number")
		a.Uvarint("last sequence number")
	}
	a.Varint("created")
	if flags&footerWindows != 0 {
		a.Varint("start of the windows")
		a.Uvarint("length of a window")
		a.Uvarint("windows")
	}
	n := a.Uvarint("tenants")
	for i := uint64(0); i < n && !a.Scan.Bad; i++ {
		a.Text("tenant")
		a.Uvarint("series")
		rows := a.Uvarint("samples") | a.Uvarint("exemplars") | a.Uvarint("lines")
		if a.Uvarint("bytes of lines"); rows != 0 {
			a.Varint("first time")
			a.Uvarint("last time, less the first")
		}
	}
	a.Uvarint("sections")
	for _, s := range sections.of(r.Version()) {
		dumpSection(a, s)
		n := a.Uvarint(fmt.Sprintf("index pages of %s", s))
		dumpEntries(a, s, n, r.footerOff)
	}
	a.End()
}

// DumpEnvelope shows what lies around the payload of a page; the payload itself only if it is stored as it is
// shown below.
func DumpEnvelope(w io.Writer, off int64, stored []byte) {
	if len(stored) < EnvelopeMin {
		ShowBytes(w, "", off, stored, "too short for a page")
		return
	}
	s := column.Scan{Rest: stored[:len(stored)-ChecksumBytes]}
	codec := s.Byte()
	n := len(s.Rest)
	raw := s.Uvarint()
	if s.Bad {
		ShowBytes(w, "", off, stored, "no length")
		return
	}
	name := [...]string{"none", "s2", "zstd", "lines", "unknown"}[min(codec, 4)]
	ShowBytes(w, "", off, stored[:1], "codec %s", name)
	ShowBytes(w, "", off+1, stored[1:1+n-len(s.Rest)], "raw length %d", raw)
	if begin := len(stored) - ChecksumBytes - len(s.Rest); codec == CodecNone {
		ShowBytes(w, "", off+int64(begin), nil, "payload, %d bytes, see below", len(s.Rest))
	} else {
		ShowBytes(w, "", off+int64(begin), s.Rest, "payload, compressed, see below")
	}
	ShowBytes(w, "", off+int64(len(stored)-ChecksumBytes), stored[len(stored)-ChecksumBytes:], "crc32c")
}

// DumpIndex shows the payload of an index page.
func DumpIndex(a *Annotator, s *Section, size int64) {
	dumpSection(a, s)
	n := a.Uvarint("entries")
	for i := uint64(0); i < n && !a.Scan.Bad; i += indexRun {
		a.Raw(4, fmt.Sprintf("where entries up to %d end", min(i+indexRun, n)-1))
	}
	for i := uint64(0); i < n && !a.Scan.Bad; i += indexRun {
		dumpEntries(a, s, min(indexRun, n-i), size)
	}
}

func dumpSection(a *Annotator, s *Section) {
	a.Show(func() string { return fmt.Sprintf("section %d: %s", a.Scan.Byte(), s) })
	a.Show(func() string { return fmt.Sprintf("family %d", a.Scan.Byte()) })
}

func dumpEntries(a *Annotator, s *Section, n uint64, size int64) {
	var c entryCoder
	for i := uint64(0); i < n && !a.Scan.Bad; i++ {
		a.Show(func() string {
			e := c.read(&a.Scan, s, size)
			place := fmt.Sprintf("[%d, %d)", e.Addr.Off, e.Addr.Off+int64(e.Addr.Len))
			switch {
			case s.Form == PairEntries:
				return fmt.Sprintf("%s: tenant %d from %q=%q", place, e.Tenant, e.Name, e.Value)
			case s.Form == KeyEntries:
				return fmt.Sprintf("%s: ranks %d..%d from key %s", place, e.Rank0, e.Last(), e.Key)
			case s.Form == UnitEntries && e.Text.Filter.Len > 0:
				return fmt.Sprintf("%s: ranks %d..%d, %d rows in [%d, %d]; %d bytes of lines in [%d, %d); filter %d in [%d, %d)", place, e.Rank0, e.Last(), e.Rows,
					e.Times.Min, e.Times.Max, e.Text.Bytes, e.Text.Lines.Off, e.Text.Lines.end(), e.Text.Number, e.Text.Filter.Off, e.Text.Filter.end())
			case s.Form == UnitEntries:
				return fmt.Sprintf("%s: ranks %d..%d, %d rows in [%d, %d]; %d bytes of lines in [%d, %d)", place, e.Rank0, e.Last(), e.Rows,
					e.Times.Min, e.Times.Max, e.Text.Bytes, e.Text.Lines.Off, e.Text.Lines.end())
			case s.rows():
				return fmt.Sprintf("%s: ranks %d..%d, %d rows in [%d, %d]", place, e.Rank0, e.Last(), e.Rows, e.Times.Min, e.Times.Max)
			}
			return fmt.Sprintf("%s: ranks %d..%d", place, e.Rank0, e.Last())
		})
	}
}
