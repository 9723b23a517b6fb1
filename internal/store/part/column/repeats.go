package column

import "encoding/binary"

const (
	// minRepeatBits is the least size of a repeat, in bits, with few exceptions.
	minRepeatBits = 10
	// packedHeadBits estimates the head of a packed column.
	packedHeadBits = 24
	// minSteps is the number of repeats from which two columns may be shorter than pairs.
	minSteps = 6
)

// asRepeats codes a column as pairs or in steps, whichever is shorter. The result is valid until the next
// call.
func (c *IntCoder) asRepeats(xs []int64, repeats int) []byte {
	c.scratch = appendRepeats(c.scratch[:0], xs)
	if repeats < minSteps || c.nested {
		return c.scratch
	}
	if c.steps == nil {
		c.steps = &IntCoder{nested: true}
	}
	c.steps.Dense = c.Dense
	c.numbers, c.lengths = c.numbers[:0], c.lengths[:0]
	for i := 0; i < len(xs); {
		j := i + 1
		for j < len(xs) && xs[j] == xs[i] {
			j++
		}
		c.numbers = append(c.numbers, xs[i])
		c.lengths = append(c.lengths, int64(j-i-1))
		i = j
	}
	pairs := len(c.scratch)
	b := binary.AppendUvarint(append(c.scratch, intsSteps), uint64(repeats))
	b = c.steps.Append(c.steps.Append(b, c.numbers), c.lengths)
	c.scratch = b
	if len(b)-pairs < pairs {
		return b[pairs:]
	}
	return b[:pairs]
}

func appendRepeats(dst []byte, xs []int64) []byte {
	dst = append(dst, intsRepeats)
	last := int64(0)
	for i := 0; i < len(xs); {
		j := i + 1
		for j < len(xs) && xs[j] == xs[i] {
			j++
		}
		dst = binary.AppendVarint(dst, xs[i]-last)
		dst = binary.AppendUvarint(dst, uint64(j-i))
		last, i = xs[i], j
	}
	return dst
}

func decodeRepeats(dst []int64, s *Scan, n int) []int64 {
	last := int64(0)
	for n > 0 {
		last += s.Varint()
		times := s.Below(uint64(n))
		if times == 0 {
			s.Fail()
			return dst
		}
		for range times {
			dst = append(dst, last)
		}
		n -= times
	}
	return dst
}

// decodeSteps reads repeats from columns of their values and lengths, which themselves are not in steps.
func (d *IntDecoder) decodeSteps(dst []int64, s *Scan, n int) []int64 {
	if d.steps == nil {
		d.steps = &IntDecoder{nested: true}
	}
	repeats := s.Below(uint64(n))
	d.numbers = d.steps.Append(d.numbers[:0], s, repeats)
	d.lengths = d.steps.Append(d.lengths[:0], s, repeats)
	if s.Bad {
		return dst
	}
	at := len(dst)
	dst = Grow(dst, n)
	out := dst[at:]
	for i, x := range d.numbers {
		more := uint64(d.lengths[i])
		if more >= uint64(len(out)) {
			s.Fail()
			return dst
		}
		for k := range out[:more+1] {
			out[k] = x
		}
		out = out[more+1:]
	}
	if len(out) > 0 {
		s.Fail()
	}
	return dst
}
