package file

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
)

const (
	// FormatVersion is that of parts with optional sections, and plainVersion that of all others.
	FormatVersion = 3
	plainVersion  = 2

	HeaderBytes = 8
	// TailBytes: length of the stored footer page, version, checksum of these eight bytes, magic.
	TailBytes = 4 + 4 + ChecksumBytes + 8
	// GuessBytes is what Open reads at first: the footer of nearly every part lies in it.
	GuessBytes = 32 << 10
)

// magic ends every part, so that other and incomplete files are recognised immediately; header begins it.
const (
	Header = "shale\x00p\x01"
	magic  = "\x01p\x00elahs"
)

// footer is the decoded footer: meta and, of each section, the index pages.
type footer struct {
	version uint32
	meta    Meta
	index   [][]Entry // by the numbers of the sections
}

const (
	footerLabels  uint64 = 1
	footerWindows uint64 = 2
)

func (f *footer) append(dst []byte, sections Sections) []byte {
	f.version = plainVersion
	for _, sec := range sections {
		if sec.Optional && len(f.index[sec.Number]) > 0 {
			f.version = FormatVersion
		}
	}
	sections = sections.of(f.version)
	m := &f.meta
	dst = binary.LittleEndian.AppendUint64(dst, uint64(m.Seed))
	dst = append(dst, byte(m.Signal))
	flags := uint64(0)
	if m.Labels {
		flags |= footerLabels
	}
	if m.Windows.Count > 0 {
		flags |= footerWindows
	}
	dst = binary.AppendUvarint(dst, flags)
	dst = binary.AppendUvarint(dst, uint64(len(m.Sources)))
	for i := range m.Sources {
		s := &m.Sources[i]
		dst = column.AppendBytes(dst, s.Node)
		dst = binary.AppendUvarint(dst, s.Epoch)
		dst = binary.AppendUvarint(dst, s.SeqLo)
		dst = binary.AppendUvarint(dst, s.SeqHi)
	}
	dst = binary.AppendVarint(dst, m.Created)
	if w := m.Windows; w.Count > 0 {
		dst = binary.AppendVarint(dst, w.Start)
		dst = binary.AppendUvarint(dst, uint64(w.Length))
		dst = binary.AppendUvarint(dst, uint64(w.Count))
	}
	dst = binary.AppendUvarint(dst, uint64(len(m.Tenants)))
	for i := range m.Tenants {
		t := &m.Tenants[i]
		dst = column.AppendBytes(dst, t.Name)
		dst = binary.AppendUvarint(dst, uint64(t.Series))
		dst = binary.AppendUvarint(dst, t.Samples)
		dst = binary.AppendUvarint(dst, t.Exemplars)
		dst = binary.AppendUvarint(dst, t.Text)
		dst = binary.AppendUvarint(dst, t.TextBytes)
		if t.Samples|t.Exemplars|t.Text != 0 {
			dst = binary.AppendVarint(dst, t.Range.Min)
			dst = binary.AppendUvarint(dst, uint64(t.Range.Max-t.Range.Min))
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(sections)))
	for _, sec := range sections {
		pages := f.index[sec.Number]
		dst = append(dst, sec.Kind, sec.Family)
		dst = binary.AppendUvarint(dst, uint64(len(pages)))
		var c entryCoder
		for i := range pages {
			dst = c.append(dst, sec, &pages[i])
		}
	}
	return dst
}

func readFooter(payload []byte, version uint32, size int64, sections Sections) (*footer, error) {
	f := &footer{version: version, index: make([][]Entry, len(sections))}
	sections = sections.of(version)
	m := &f.meta
	s := column.Scan{Rest: payload}
	m.Seed = model.KeySeed(s.U64())
	m.Signal = model.Signal(s.Byte())
	flags := s.Uvarint()
	if flags&^(footerLabels|footerWindows) != 0 {
		return nil, column.Corrupt("footer: unknown flags %x", flags)
	}
	m.Labels = flags&footerLabels != 0
	var sources []Source
	for n := s.Below(uint64(len(s.Rest))); n > 0 && !s.Bad; n-- {
		sources = append(sources, Source{Node: string(s.Bytes()), Epoch: s.Uvarint(), SeqLo: s.Uvarint(), SeqHi: s.Uvarint()})
	}
	m.Created = s.Varint()
	if flags&footerWindows != 0 {
		m.Windows = Windows{Start: s.Varint(), Length: int64(s.Uvarint()), Count: s.Below(MaxWindows)}
	}
	if err := s.Err("footer"); err != nil {
		return nil, err
	}
	if why := m.SetSources(sources); why != "" {
		return nil, column.Corrupt("footer: %s", why)
	}
	if !m.Windows.Valid() || m.Windows.Count == 0 && flags&footerWindows != 0 {
		return nil, column.Corrupt("footer: %d windows of %d ns from %d on", m.Windows.Count, m.Windows.Length, m.Windows.Start)
	}
	m.Range = NoTimes
	if err := readTenants(&s, m); err != nil {
		return nil, err
	}
	if n := s.Uvarint(); n != uint64(len(sections)) && !s.Bad {
		return nil, column.Invalid("%d sections; this Shale reads parts with %d", n, len(sections))
	}
	for _, sec := range sections {
		if kind := [2]byte{s.Byte(), s.Byte()}; kind != sec.stored() && !s.Bad {
			return nil, column.Invalid("section %d of family %d; this Shale does not read it", kind[0], kind[1])
		}
		n := s.Below(uint64(len(s.Rest)))
		var c entryCoder
		for range n {
			f.index[sec.Number] = append(f.index[sec.Number], c.read(&s, sec, size))
			if s.Bad {
				break
			}
		}
	}
	// A key takes more than eight bytes. A footer that promises more series than the file can hold would make
	// readers allocate for them.
	if m.Series > uint64(size)/8 {
		return nil, column.Corrupt("footer: %d series in a file of %d bytes", m.Series, size)
	}
	return f, s.End("footer")
}

func readTenants(s *column.Scan, m *Meta) error {
	n := s.Below(uint64(len(s.Rest)))
	for i := 0; i < n && !s.Bad; i++ {
		t := Tenant{Name: string(s.Bytes()), Rank0: uint32(m.Series), Range: NoTimes}
		t.Series = uint32(s.Below(1<<32 - 1))
		t.Samples, t.Exemplars, t.Text, t.TextBytes = s.Uvarint(), s.Uvarint(), s.Uvarint(), s.Uvarint()
		if t.Samples|t.Exemplars|t.Text != 0 {
			t.Range.Min = s.Varint()
			t.Range.Max = t.Range.Min + int64(s.Uvarint())
			m.Range.Min, m.Range.Max = min(m.Range.Min, t.Range.Min), max(m.Range.Max, t.Range.Max)
		}
		if i > 0 && t.Name <= m.Tenants[i-1].Name {
			return column.Corrupt("footer: tenant %q stands after %q", t.Name, m.Tenants[i-1].Name)
		}
		m.Series += uint64(t.Series)
		m.add(&t)
		if m.Series > 1<<32-1 || t.Range.Min > t.Range.Max && t.Samples|t.Exemplars|t.Text != 0 {
			return column.Corrupt("footer: tenant %q: counts or times out of bounds", t.Name)
		}
		m.Tenants = append(m.Tenants, t)
	}
	return s.Err("footer")
}

// appendTail appends what follows the stored footer page.
func (f *footer) appendTail(dst []byte, footerLen int) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(footerLen))
	dst = binary.LittleEndian.AppendUint32(dst, f.version)
	dst = binary.LittleEndian.AppendUint32(dst, Checksum(dst[at:]))
	return append(dst, magic...)
}

// readTail returns the length of the stored footer page, and the version of the format.
func readTail(tail []byte, size int64) (n int64, version uint32, err error) {
	version = binary.LittleEndian.Uint32(tail[4:])
	switch {
	case string(tail[12:]) != magic:
		return 0, 0, column.Corrupt("no magic at the end: not a part, or not whole")
	case binary.LittleEndian.Uint32(tail[8:]) != Checksum(tail[:8]):
		return 0, 0, column.Corrupt("tail: checksum does not match")
	case version != FormatVersion && version != plainVersion:
		return 0, 0, column.Invalid("format version %d; this Shale reads versions %d and %d", version, plainVersion, FormatVersion)
	}
	n = int64(binary.LittleEndian.Uint32(tail))
	if n > MaxFooterBytes+envelopeMax || n > size-HeaderBytes-TailBytes {
		return 0, 0, column.Corrupt("tail: footer of %d bytes in a file of %d", n, size)
	}
	return n, version, nil
}

// fetchFooter reads the footer with one request, or two if it is long.
func fetchFooter(ctx context.Context, read ReadRange, size int64, sections Sections) (*footer, int64, error) {
	if size < HeaderBytes+TailBytes+EnvelopeMin {
		return nil, 0, column.Corrupt("file of %d bytes, expected at least %d", size, HeaderBytes+TailBytes+EnvelopeMin)
	}
	have := min(size, GuessBytes)
	end, err := read(ctx, size-have, have)
	if err != nil {
		return nil, 0, err
	}
	if int64(len(end)) != have {
		return nil, 0, column.Corrupt("%d bytes read, should be %d", len(end), have)
	}
	n, version, err := readTail(end[have-TailBytes:], size)
	if err != nil {
		return nil, 0, err
	}
	off := size - TailBytes - n
	var stored []byte
	if n+TailBytes <= have {
		// The names of the index alias the footer. Without a copy they would keep all bytes of the request.
		stored = bytes.Clone(end[have-TailBytes-n : have-TailBytes])
	} else if stored, err = read(ctx, off, n); err != nil {
		return nil, 0, err
	}
	payload, err := OpenPage(stored, MaxFooterBytes)
	if err != nil {
		return nil, 0, err
	}
	f, err := readFooter(payload, version, off, sections)
	return f, off, err
}
