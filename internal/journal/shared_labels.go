package journal

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/shaledb/shale/internal/model"
)

// maxExpansion bounds how many times larger than their section decoded label sets may be, so that a hostile
// record cannot exhaust a reader's memory. Scrapes of few targets with long labels reach about 60.
const maxExpansion = 256

// appendSharedLabels stores each label set as its difference from the previous one. The series of a scrape
// follow each other and share most of their labels. Storing whole sets was tried: it writes many times the
// bytes, at a cost mostly in the kernel.
func appendSharedLabels(dst []byte, b *model.Batch) []byte {
	dst = binary.AppendUvarint(dst, uint64(b.Labels.Len()))
	begin, out := len(dst), 0
	var last model.Labels
	for i, series := range b.Labels.Series {
		l := b.Labels.At(i)
		out += len(l)
		if out > maxExpansion*(len(dst)-begin) {
			last = nil // store the whole set
		}
		dst = binary.AppendUvarint(dst, uint64(series))
		dst = binary.AppendUvarint(dst, uint64(len(l)))
		dst = appendDifference(dst, last, l)
		last = l
	}
	return dst
}

// appendDifference stores l as steps along last: a number of bytes to copy, new bytes, and a number of bytes
// of last to skip.
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

// commonLabels returns the size of the labels that both begin with. Comparing words first and then following
// the lengths was not faster.
func commonLabels(a, b model.Labels) (n int) {
	for n < len(b) {
		size := b[n:].FirstSize()
		if n+size > len(a) || !bytes.Equal(a[n:n+size], b[n:n+size]) {
			break
		}
		n += size
	}
	return n
}

// differentLabels returns how many bytes of each come before the next label that they have in common. Labels
// are sorted by name, so one walk along both finds it. If they are not sorted, the record is larger than
// necessary but correct.
func differentLabels(a, b model.Labels) (inA, inB int) {
	wholeA, wholeB := len(a), len(b)
	for len(a) > 0 && len(b) > 0 {
		size := b.FirstSize()
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

// sharedLabels decodes the output of appendSharedLabels.
func (d *decoder) sharedLabels() {
	t := &d.b.Labels
	most := min(maxExpansion*uint64(len(d.in)), math.MaxUint32) // the largest offset in Labels.Ends
	n := d.uvarint()
	begin, end := len(t.Bytes), len(t.Bytes) // of the set before
	for i := uint64(0); i < n && d.err == nil; i++ {
		series, size := d.uvarint(), d.uvarint()
		if series >= uint64(len(d.b.Keys)) {
			d.fail("expected a series below %d in the labels, got %d", len(d.b.Keys), series)
		} else if size > most {
			d.fail("decoded labels exceed 4 GiB or %d times the size of their section", maxExpansion)
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
				d.fail("label set does not match the previous one")
				return
			}
			t.Bytes = append(append(t.Bytes, t.Bytes[at:at+int(same)]...), fresh...)
			left -= same + uint64(len(fresh))
			gone := d.uvarint()
			if at += int(same); gone > uint64(end-at) {
				d.fail("label set does not match the previous one")
				return
			}
			at += int(gone)
		}
		end = len(t.Bytes)
		t.Series, t.Ends = append(t.Series, uint32(series)), append(t.Ends, uint32(end))
	}
}
