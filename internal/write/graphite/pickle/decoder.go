package pickle

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/shaledb/shale/internal/model"
)

// maxMarks bounds how deep a pickle may nest what it has begun. A list of points needs three: of the list, of a point,
// and of its time and value.
const maxMarks = 32

// Decoder reads pickles, one after the other. It belongs to one goroutine. The zero value is ready when Float and
// Reserve are set.
type Decoder struct {
	// Float reads a number written in decimal, as Python's float does.
	Float func(text []byte) (f float64, ok bool)
	// Reserve is asked before the decoder takes more bytes of memory. Its error ends the decoding.
	Reserve func(bytes int) error

	in  []byte
	at  int
	end bool

	stack []Value
	// marks are lengths of the stack, fence is the last of them or 0: what lies below it is out of reach.
	marks [maxMarks]int
	depth int
	fence int

	memo     []Value
	elements []Value
	lists    []list
	runs     []run
	text     []byte
}

// Reset forgets the last pickle and keeps the memory.
func (d *Decoder) Reset() {
	d.in, d.at, d.end, d.depth, d.fence = nil, 0, false, 0, 0
	d.stack, d.elements, d.memo = d.stack[:0], d.elements[:0], d.memo[:0]
	d.lists, d.runs, d.text = d.lists[:0], d.runs[:0], d.text[:0]
}

const (
	valueBytes = int(unsafe.Sizeof(Value{}))
	listBytes  = int(unsafe.Sizeof(list{}))
	runBytes   = int(unsafe.Sizeof(run{}))
)

// Memory returns the bytes that the decoder keeps.
func (d *Decoder) Memory() int {
	return valueBytes*(cap(d.stack)+cap(d.memo)+cap(d.elements)) + listBytes*cap(d.lists) + runBytes*cap(d.runs) + cap(d.text)
}

// Decode reads a pickle and returns what it holds. in must stay as it is until the next Decode or Reset. What stands
// behind the end of the pickle is not looked at, as in Python. Errors are of class [model.ErrInvalid], but for that of
// Reserve, which is returned as it is.
func (d *Decoder) Decode(in []byte) (Value, error) {
	d.Reset()
	if len(in) > math.MaxInt32 {
		return Value{}, fmt.Errorf("%w: pickle: %d bytes are too many", model.ErrInvalid, len(in))
	}
	d.in = in
	for !d.end {
		if d.at == len(d.in) {
			return Value{}, d.failed(d.at, "the pickle ends without STOP")
		}
		op := d.in[d.at]
		d.at++
		if err := d.step(op); err != nil {
			return Value{}, err
		}
	}
	return d.stack[len(d.stack)-1], nil
}

// fail says what is wrong with the opcode that was read last, or its argument.
func (d *Decoder) fail(format string, args ...any) error {
	return d.failed(d.at, format, args...)
}

func (d *Decoder) failed(at int, format string, args ...any) error {
	return fmt.Errorf("%w: pickle: byte %d of %d: %s", model.ErrInvalid, at, len(d.in), fmt.Sprintf(format, args...))
}

// step executes one opcode. Those of binary pickles' points come first.
func (d *Decoder) step(op byte) error {
	switch op {
	case opBinUnicode:
		return d.counted(4)
	case opShortBinUnicode, opShortBinString, opShortBinBytes:
		return d.counted(1)
	case opBinString, opBinBytes:
		return d.counted(4)
	case opBinUnicode8, opBinBytes8:
		return d.counted(8)
	case opBinPut:
		return d.put(1)
	case opLongBinPut:
		return d.put(4)
	case opMemoize:
		return d.store(uint64(len(d.memo)))
	case opBinGet:
		return d.get(1)
	case opLongBinGet:
		return d.get(4)
	case opBinFloat, opBinInt, opBinInt1, opBinInt2, opLong1, opLong4:
		return d.binaryNumber(op)
	case opTuple2:
		return d.tuple(2)
	case opTuple1:
		return d.tuple(1)
	case opTuple3:
		return d.tuple(3)
	case opEmptyTuple:
		return d.tuple(0)
	case opMark:
		return d.mark()
	case opTuple:
		n, err := d.unmark()
		if err != nil {
			return err
		}
		return d.tuple(n)
	case opAppend:
		return d.append(1)
	case opAppends:
		n, err := d.unmark()
		if err != nil {
			return err
		}
		return d.append(n)
	}
	return d.rareStep(op)
}

// rareStep executes the opcodes that stand once in a pickle, or in pickles of protocol 0.
func (d *Decoder) rareStep(op byte) error {
	switch op {
	case opProto:
		v, err := d.integer(1)
		if err == nil && v > maxProtocol {
			return d.fail("protocol %d is not known", v)
		}
		return err
	case opFrame:
		// The length says how much a reader of a stream should fetch at once; the whole pickle is here.
		n, err := d.integer(8)
		if err == nil && n > uint64(len(d.in)-d.at) {
			return d.fail("FRAME of %d bytes, of which %d are there", n, len(d.in)-d.at)
		}
		return err
	case opStop:
		if len(d.stack) == d.fence {
			return d.fail("STOP with nothing to return")
		}
		d.end = true
		return nil
	case opEmptyList:
		return d.list(0)
	case opList:
		n, err := d.unmark()
		if err != nil {
			return err
		}
		return d.list(n)
	case opNone:
		return d.push(Value{kind: None})
	case opNewTrue:
		return d.push(number(1))
	case opNewFalse:
		return d.push(number(0))
	case opPut, opGet, opInt, opLong, opFloat, opString, opUnicode:
		return d.lineStep(op)
	}
	if name := refused(op); name != "" {
		return d.fail("opcode %s (%#02x) is refused: a list of points needs no such thing", name, op)
	}
	return d.fail("%#02x is no opcode", op)
}
