package journal

import (
	"encoding/binary"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// DecodeBatch fills b from a record and keeps no reference to src. Errors are of class corrupt; then the
// contents of b must not be used. Whatever src contains, decoding takes at most a small multiple of its size,
// for labels maxExpansion times that size, and for lines maxLineBytes. Labels, histograms, exemplars and
// lines are copied unparsed, as everywhere below the write path.
func DecodeBatch(src []byte, b *model.Batch) error {
	// Consecutive records mostly have the same tenant.
	tenant := b.Tenant
	b.Reset()
	d := decoder{b: b, in: src}
	switch {
	case len(src) < 3:
		return corrupt("%d bytes", len(src))
	case src[0] != version && src[0] != controlVersion:
		return corrupt("version %d is not known", src[0])
	case src[1] != byte(model.Metrics) && src[1] != byte(model.Logs):
		return corrupt("signal %d is not known", src[1])
	}
	b.Signal = model.Signal(src[1])
	d.in = src[2:]
	name := d.take(d.length())
	if d.err != nil {
		return d.err
	}
	if tenant != string(name) {
		tenant = string(name)
	}
	b.Tenant = tenant
	last := byte(0)
	for len(d.in) > 0 {
		kind := d.in[0]
		d.in = d.in[1:]
		if kind <= last {
			return corrupt("section %d after section %d", kind, last)
		}
		last = kind
		body := d.take(d.uint32())
		if d.err == nil && (kind == controlSection) != (src[0] == controlVersion) {
			d.fail("section %d in a record of version %d", kind, src[0])
		}
		if d.err == nil {
			d.section(kind, body)
		}
		if d.err != nil {
			return d.err
		}
	}
	if src[0] == controlVersion && last == 0 {
		return corrupt("version %d without section %d", controlVersion, controlSection)
	}
	return nil
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: journal record: %s", model.ErrCorrupt, fmt.Sprintf(format, args...))
}

// decoder reads from in. After its first error it returns zeros.
type decoder struct {
	b   *model.Batch
	in  []byte
	err error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = corrupt(format, args...)
		d.in = nil
	}
}

func (d *decoder) uvarint() uint64 {
	if len(d.in) > 0 && d.in[0] < 0x80 {
		v := d.in[0]
		d.in = d.in[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(d.in)
	if n <= 0 {
		d.fail("number is truncated")
		return 0
	}
	d.in = d.in[n:]
	return v
}

// length reads a number of bytes, at most as many as are left.
func (d *decoder) length() int {
	n := d.uvarint()
	if n > uint64(len(d.in)) {
		d.fail("expected %d bytes, %d are left", n, len(d.in))
		return 0
	}
	return int(n)
}

func (d *decoder) take(n int) []byte {
	if n > len(d.in) {
		d.fail("expected %d bytes, %d are left", n, len(d.in))
		return nil
	}
	part := d.in[:n]
	d.in = d.in[n:]
	return part
}

func (d *decoder) section(kind byte, body []byte) {
	s := decoder{b: d.b, in: body}
	switch kind {
	case keysSection:
		s.keys()
	case labelsSection:
		s.labels()
	case sharedSection:
		s.sharedLabels()
	case controlSection:
		s.control()
	case rowsSection + byte(model.Samples), rowsSection + byte(model.Exemplars), rowsSection + byte(model.Text):
		s.rows(model.Family(kind - rowsSection))
	default:
		s.fail("unknown section %d", kind)
	}
	if s.err == nil && len(s.in) > 0 {
		s.fail("section %d has %d excess bytes", kind, len(s.in))
	}
	d.err = s.err
}

// control reads a control section. Its body is not parsed here, like labels and rows.
func (d *decoder) control() {
	kind := d.take(1)
	if d.err != nil {
		return
	}
	k := model.ControlKind(kind[0])
	if k != model.ControlDelete && k != model.ControlCancel {
		d.fail("unknown kind %d of a control record", k)
		return
	}
	d.b.Control = model.Control{Kind: k, Body: append([]byte(nil), d.take(len(d.in))...)}
}

func (d *decoder) keys() {
	if len(d.in)%model.KeyBytes != 0 {
		d.fail("size of keys, %d bytes, is not a multiple of the key size", len(d.in))
		return
	}
	for ; len(d.in) > 0; d.in = d.in[model.KeyBytes:] {
		d.b.Keys = append(d.b.Keys, model.KeyFrom(d.in))
	}
}

func (d *decoder) labels() {
	n := d.uvarint()
	for i := uint64(0); i < n && d.err == nil; i++ {
		series := d.uvarint()
		l := d.take(d.length())
		if series >= uint64(len(d.b.Keys)) {
			d.fail("expected a series below %d in the labels, got %d", len(d.b.Keys), series)
		}
		if d.err == nil {
			d.b.Labels.Append(uint32(series), l)
		}
	}
}

func (d *decoder) uint32() int {
	b := d.take(4)
	if d.err != nil {
		return 0
	}
	return int(binary.LittleEndian.Uint32(b))
}

func (d *decoder) uint64() uint64 {
	b := d.take(8)
	if d.err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}
