package part

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/shaledb/shale/internal/model"
)

const (
	formatVersion = 1

	headerBytes = 8
	// tailBytes: length of the stored footer page, version, checksum of these eight bytes, magic.
	tailBytes = 4 + 4 + crcBytes + 8
	// guessBytes is what Open reads at first: the footer of nearly every part lies in it.
	guessBytes = 32 << 10
)

// magic ends every part, so that what is not one, or not whole, is told at once; header begins it.
const (
	header = "shale\x00p\x01"
	magic  = "\x01p\x00elahs"
)

// footer is the decoded footer: meta and, of each section, the index pages.
type footer struct {
	meta  Meta
	index [][]pageEntry // by the numbers of the sections
}

const (
	footerLabels  uint64 = 1
	footerWindows uint64 = 2
)

func (f *footer) append(dst []byte, sections sectionList) []byte {
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
		dst = appendBytes(dst, s.Node)
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
		dst = appendBytes(dst, t.Name)
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
		pages := f.index[sec.number]
		dst = append(dst, sec.kind, sec.family)
		dst = binary.AppendUvarint(dst, uint64(len(pages)))
		var c entryCoder
		for i := range pages {
			dst = c.append(dst, sec, &pages[i])
		}
	}
	return dst
}

func readFooter(payload []byte, size int64, sections sectionList) (*footer, error) {
	f := &footer{index: make([][]pageEntry, len(sections))}
	m := &f.meta
	s := scan{b: payload}
	m.Seed = model.KeySeed(s.u64())
	m.Signal = model.Signal(s.byte())
	flags := s.uvarint()
	if flags&^(footerLabels|footerWindows) != 0 {
		return nil, corrupt("footer: unknown flags %x", flags)
	}
	m.Labels = flags&footerLabels != 0
	var sources []Source
	for n := s.below(uint64(len(s.b))); n > 0 && !s.bad; n-- {
		sources = append(sources, Source{Node: string(s.bytes()), Epoch: s.uvarint(), SeqLo: s.uvarint(), SeqHi: s.uvarint()})
	}
	m.Created = s.varint()
	if flags&footerWindows != 0 {
		m.Windows = Windows{Start: s.varint(), Length: int64(s.uvarint()), Count: s.below(maxWindows)}
	}
	if err := s.err("footer"); err != nil {
		return nil, err
	}
	if why := m.setSources(sources); why != "" {
		return nil, corrupt("footer: %s", why)
	}
	if !m.Windows.valid() || m.Windows.Count == 0 && flags&footerWindows != 0 {
		return nil, corrupt("footer: %d windows of %d ns from %d on", m.Windows.Count, m.Windows.Length, m.Windows.Start)
	}
	m.Range = noTimes
	if err := readTenants(&s, m); err != nil {
		return nil, err
	}
	if n := s.uvarint(); n != uint64(len(sections)) && !s.bad {
		return nil, invalid("%d sections; this Shale reads parts with %d", n, len(sections))
	}
	for _, sec := range sections {
		if kind := [2]byte{s.byte(), s.byte()}; kind != sec.stored() && !s.bad {
			return nil, invalid("section %d of family %d; this Shale does not read it", kind[0], kind[1])
		}
		n := s.below(uint64(len(s.b)))
		var c entryCoder
		for range n {
			f.index[sec.number] = append(f.index[sec.number], c.read(&s, sec, size))
			if s.bad {
				break
			}
		}
	}
	// A key takes more than eight bytes. A footer that promises more series than the file can hold would make readers
	// allocate for them.
	if m.Series > uint64(size)/8 {
		return nil, corrupt("footer: %d series in a file of %d bytes", m.Series, size)
	}
	return f, s.end("footer")
}

func readTenants(s *scan, m *Meta) error {
	n := s.below(uint64(len(s.b)))
	for i := 0; i < n && !s.bad; i++ {
		t := Tenant{Name: string(s.bytes()), Rank0: uint32(m.Series), Range: noTimes}
		t.Series = uint32(s.below(1<<32 - 1))
		t.Samples, t.Exemplars, t.Text, t.TextBytes = s.uvarint(), s.uvarint(), s.uvarint(), s.uvarint()
		if t.Samples|t.Exemplars|t.Text != 0 {
			t.Range.Min = s.varint()
			t.Range.Max = t.Range.Min + int64(s.uvarint())
			m.Range.Min, m.Range.Max = min(m.Range.Min, t.Range.Min), max(m.Range.Max, t.Range.Max)
		}
		if i > 0 && t.Name <= m.Tenants[i-1].Name {
			return corrupt("footer: tenant %q stands after %q", t.Name, m.Tenants[i-1].Name)
		}
		m.Series += uint64(t.Series)
		m.add(&t)
		if m.Series > 1<<32-1 || t.Range.Min > t.Range.Max && t.Samples|t.Exemplars|t.Text != 0 {
			return corrupt("footer: tenant %q: counts or times out of bounds", t.Name)
		}
		m.Tenants = append(m.Tenants, t)
	}
	return s.err("footer")
}

// appendTail appends what follows the stored footer page.
func appendTail(dst []byte, footerLen int) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(footerLen))
	dst = binary.LittleEndian.AppendUint32(dst, formatVersion)
	dst = binary.LittleEndian.AppendUint32(dst, checksum(dst[at:]))
	return append(dst, magic...)
}

// readTail returns the length of the stored footer page.
func readTail(tail []byte, size int64) (int64, error) {
	switch {
	case string(tail[12:]) != magic:
		return 0, corrupt("no magic at the end: not a part, or not whole")
	case binary.LittleEndian.Uint32(tail[8:]) != checksum(tail[:8]):
		return 0, corrupt("tail: checksum does not match")
	case binary.LittleEndian.Uint32(tail[4:]) != formatVersion:
		return 0, invalid("format version %d; this Shale reads version %d", binary.LittleEndian.Uint32(tail[4:]), formatVersion)
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if n > maxFooterBytes+envelopeMax || n > size-headerBytes-tailBytes {
		return 0, corrupt("tail: footer of %d bytes in a file of %d", n, size)
	}
	return n, nil
}

// fetchFooter reads the footer with one request, or two if it is long.
func fetchFooter(ctx context.Context, read ReadRange, size int64, sections sectionList) (*footer, int64, error) {
	if size < headerBytes+tailBytes+envelopeMin {
		return nil, 0, corrupt("file of %d bytes", size)
	}
	have := min(size, guessBytes)
	end, err := read(ctx, size-have, have)
	if err != nil {
		return nil, 0, err
	}
	if int64(len(end)) != have {
		return nil, 0, corrupt("%d bytes read, should be %d", len(end), have)
	}
	n, err := readTail(end[have-tailBytes:], size)
	if err != nil {
		return nil, 0, err
	}
	off := size - tailBytes - n
	var stored []byte
	if n+tailBytes <= have {
		// The names of the index are parts of the footer, which is mostly stored as it is, and must not keep all that was read.
		stored = bytes.Clone(end[have-tailBytes-n : have-tailBytes])
	} else if stored, err = read(ctx, off, n); err != nil {
		return nil, 0, err
	}
	payload, err := openPage(stored, maxFooterBytes)
	if err != nil {
		return nil, 0, err
	}
	f, err := readFooter(payload, off, sections)
	return f, off, err
}
