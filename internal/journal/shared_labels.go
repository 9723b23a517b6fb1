package journal

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/shaledb/shale/internal/model"
)

// mostSpread bounds how many times larger than their section label sets may be when they are written out, so that a
// record cannot cheat a reader out of memory. Scrapes of few targets with long labels come near 60.
const mostSpread = 256

// appendSharedLabels stores each label set as what it has in common with the one before. Series of a scrape stand
// together and share most of their labels: of 600 bytes some 25 are left. Storing sets whole took more than a quarter of the
// CPU of creating a series, mostly in the kernel, for ten times the bytes.
func appendSharedLabels(dst []byte, b *model.Batch) []byte {
	dst = binary.AppendUvarint(dst, uint64(b.Labels.Len()))
	begin, out := len(dst), 0
	var last model.Labels
	for i, series := range b.Labels.Series {
		l := b.Labels.At(i)
		out += len(l)
		if out > mostSpread*(len(dst)-begin) {
			last = nil // nothing in common: the set is stored whole
		}
		dst = binary.AppendUvarint(dst, uint64(series))
		dst = binary.AppendUvarint(dst, uint64(len(l)))
		dst = appendDifference(dst, last, l)
		last = l
	}
	return dst
}

// appendDifference stores l as steps along last: so many bytes are copied, then come these new ones, then so many of last
// are left out.
func appendDifference(dst []byte, last, l model.Labels) []byte {
	for len(l) > 0 {
		same := commonLabels(last, l)
		last, l = last[same:], l[same:]
		gone, fresh := differentLabels(last, l)
		dst = binary.AppendUvarint(dst, uint64(same))
		dst = binary.AppendUvarint(dst, uint64(fresh))
		dst = append(dst, l[:fresh]...)
		dst = binary.AppendUvarint(dst, uint64(gone))
		last, l = last[gone:], l[fresh:]
	}
	return dst
}

// labelBytes returns how many bytes the first label takes, or all that there are if it is no label.
func labelBytes(l model.Labels) int {
	if len(l) > 1 && l[1] < 0x80 {
		return min(2+int(l[1]), len(l))
	}
	if _, _, rest, ok := l.Next(); ok {
		return len(l) - len(rest)
	}
	return len(l)
}

// commonLabels returns how many bytes the labels take with which both begin. Comparing words of both and going along the
// lengths afterwards takes as long.
func commonLabels(a, b model.Labels) (n int) {
	for n < len(b) {
		size := labelBytes(b[n:])
		if n+size > len(a) || !bytes.Equal(a[n:n+size], b[n:n+size]) {
			break
		}
		n += size
	}
	return n
}

// differentLabels returns how many bytes of both lie before the next label that they have in common. Labels are sorted by
// name, so it is found by going along both; where that does not hold, more is stored than need be, and nothing else.
func differentLabels(a, b model.Labels) (inA, inB int) {
	wholeA, wholeB := len(a), len(b)
	for len(a) > 0 && len(b) > 0 {
		size := labelBytes(b)
		if size <= len(a) && bytes.Equal(a[:size], b[:size]) {
			break
		}
		nameA, _, restA, okA := a.Next()
		nameB, _, restB, okB := b.Next()
		if !okA || !okB {
			return wholeA - len(a), wholeB
		}
		order := bytes.Compare(nameA, nameB)
		if order <= 0 {
			a = restA
		}
		if order >= 0 {
			b = restB
		}
	}
	if len(a) == 0 {
		b = nil
	}
	return wholeA - len(a), wholeB - len(b)
}

// sharedLabels reads what appendSharedLabels wrote.
func (d *decoder) sharedLabels() {
	t := &d.b.Labels
	most := min(mostSpread*uint64(len(d.in)), math.MaxUint32) // which is what ends of labels can say
	n := d.uvarint()
	begin, end := len(t.Bytes), len(t.Bytes) // of the set before
	for i := uint64(0); i < n && d.err == nil; i++ {
		series, size := d.uvarint(), d.uvarint()
		if series >= uint64(len(d.b.Keys)) {
			d.fail("labels of series %d of %d", series, len(d.b.Keys))
		} else if size > most {
			d.fail("labels of more than %d times the bytes that hold them, or of 4 GiB", mostSpread)
		}
		if d.err != nil {
			return
		}
		most -= size
		at := begin
		begin = len(t.Bytes)
		for left := size; left > 0 && d.err == nil; {
			same, fresh := d.uvarint(), d.take(d.length())
			if same > uint64(end-at) || same > left || uint64(len(fresh)) > left-same {
				d.fail("labels do not fit those before them")
				return
			}
			t.Bytes = append(append(t.Bytes, t.Bytes[at:at+int(same)]...), fresh...)
			left -= same + uint64(len(fresh))
			gone := d.uvarint()
			if at += int(same); gone > uint64(end-at) {
				d.fail("labels do not fit those before them")
				return
			}
			at += int(gone)
		}
		end = len(t.Bytes)
		t.Series, t.Ends = append(t.Series, uint32(series)), append(t.Ends, uint32(end))
	}
}
