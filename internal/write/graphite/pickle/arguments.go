package pickle

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"strconv"
)

// bytes returns the next n bytes of the pickle.
func (d *Decoder) bytes(n uint64) ([]byte, error) {
	if n > uint64(len(d.in)-d.at) {
		return nil, d.fail("expected a length of %d, with %d left", n, len(d.in)-d.at)
	}
	b := d.in[d.at : d.at+int(n)]
	d.at += int(n)
	return b, nil
}

// integer reads an unsigned little-endian integer of 1, 4 or 8 bytes.
func (d *Decoder) integer(size int) (uint64, error) {
	b, err := d.bytes(uint64(size))
	if err != nil {
		return 0, err
	}
	switch size {
	case 1:
		return uint64(b[0]), nil
	case 4:
		return uint64(binary.LittleEndian.Uint32(b)), nil
	}
	return binary.LittleEndian.Uint64(b), nil
}

// counted pushes a string that is preceded by its length in size bytes.
func (d *Decoder) counted(size int) error {
	n, err := d.integer(size)
	if err != nil {
		return err
	}
	begin := d.at
	if _, err := d.bytes(n); err != nil {
		return err
	}
	return d.push(Value{kind: Text, n: uint32(n), bits: uint64(begin)})
}

func (d *Decoder) binaryNumber(op byte) (err error) {
	size := uint64(0)
	switch op {
	case opBinFloat:
		size = 8
	case opBinInt:
		size = 4
	case opBinInt2:
		size = 2
	case opBinInt1:
		size = 1
	case opLong1:
		size, err = d.integer(1)
	case opLong4:
		size, err = d.integer(4)
	}
	if err != nil {
		return err
	}
	b, err := d.bytes(size)
	if err != nil {
		return err
	}
	switch op {
	case opBinFloat:
		return d.push(Value{kind: Number, bits: binary.BigEndian.Uint64(b)})
	case opBinInt:
		return d.push(number(float64(int32(binary.LittleEndian.Uint32(b)))))
	case opBinInt2:
		return d.push(number(float64(binary.LittleEndian.Uint16(b))))
	case opBinInt1:
		return d.push(number(float64(b[0])))
	}
	return d.push(long(b))
}

// long reads a little-endian integer in two's complement, of any length.
func long(b []byte) Value {
	negative := len(b) > 0 && b[len(b)-1] >= 0x80
	if len(b) <= 8 {
		v := int64(0)
		if negative {
			v = -1
		}
		for i := len(b) - 1; i >= 0; i-- {
			v = v<<8 | int64(b[i])
		}
		return number(float64(v))
	}
	// The top bytes may all repeat the sign.
	sign := byte(0)
	if negative {
		sign = 0xff
	}
	for len(b) > 1 && b[len(b)-1] == sign && b[len(b)-2]^sign < 0x80 {
		b = b[:len(b)-1]
	}
	if len(b) > 129 { // 1,024 bits plus the sign
		return Value{kind: Huge}
	}
	magnitude := slices.Clone(b)
	slices.Reverse(magnitude)
	if negative {
		for i := range magnitude {
			magnitude[i] = ^magnitude[i]
		}
	}
	x := new(big.Int).SetBytes(magnitude)
	if negative {
		x.Not(x)
	}
	f, _ := new(big.Float).SetInt(x).Float64()
	return finite(f)
}

// finite returns the value of an integer that was rounded to f.
func finite(f float64) Value {
	if math.IsInf(f, 0) {
		return Value{kind: Huge}
	}
	return number(f)
}

// line returns the argument of an opcode of protocol 0, without its newline.
func (d *Decoder) line() ([]byte, error) {
	n := bytes.IndexByte(d.in[d.at:], '\n')
	if n < 0 {
		return nil, d.failed(len(d.in), "a line has no newline")
	}
	b := d.in[d.at : d.at+n]
	d.at += n + 1
	return b, nil
}

// lineStep executes the opcodes of protocol 0 that have a line as argument.
func (d *Decoder) lineStep(op byte) error {
	begin := d.at
	b, err := d.line()
	if err != nil {
		return err
	}
	switch op {
	case opPut, opGet:
		i, err := strconv.ParseUint(string(b), 10, 64)
		if err != nil {
			return d.fail("the memo index %.20q is not a number", b)
		}
		if op == opPut {
			return d.store(i)
		}
		return d.load(i)
	case opInt, opLong:
		return d.decimal(op, b)
	case opFloat:
		f, ok := d.Float(bytes.TrimSpace(b))
		if !ok {
			return d.fail("%.40q is not a float", b)
		}
		return d.push(number(f))
	case opString:
		return d.quoted(begin, b)
	}
	return d.unicode(begin, b)
}

// decimal pushes an integer, or a boolean, which protocol 0 writes as 00 or 01.
func (d *Decoder) decimal(op byte, b []byte) error {
	b = bytes.TrimSpace(b)
	if op == opLong {
		b = bytes.TrimSuffix(b, []byte("L"))
	}
	for i, c := range b {
		if c-'0' > 9 && (i > 0 || c != '-' && c != '+') {
			return d.fail("%.40q is not an integer", b)
		}
	}
	f, ok := d.Float(b)
	if !ok {
		return d.fail("%.40q is not an integer", b)
	}
	return d.push(finite(f))
}
