package pickle

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/shaledb/shale/internal/model"
)

// maxMarks bounds the nesting of open MARKs. A list of points needs three: for the list, a point, and
// its time and value.
const maxMarks = 32

// Decoder decodes pickles one after the other. It belongs to one goroutine. The zero value is ready
// once Float and Reserve are set.
type Decoder struct {
	// Float parses a decimal number as Python's float does.
	Float func(text []byte) (f float64, ok bool)
	// Dicts allows dicts, which requests have and lists of points have not.
	Dicts bool
	// Reserve is called before the decoder allocates more memory. Its error ends the decoding.
	Reserve func(bytes int) error

	in  []byte
	at  int
	end bool

	stack []Value
	// marks has the previous fences. fence is the length of the stack at the last MARK, or 0: opcodes
	// cannot reach the values below it.
	marks [maxMarks]int
	depth int
	fence int

	memo     []Value
	elements []Value
	lists    []list
	runs     []run
	text     []byte
}

// Reset discards the last pickle and keeps the memory.
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

// Memory returns the size of the memory that the decoder has allocated.
func (d *Decoder) Memory() int {
	return valueBytes*(cap(d.stack)+cap(d.memo)+cap(d.elements)) + listBytes*cap(d.lists) + runBytes*cap(d.runs) + cap(d.text)
}

// Decode decodes a pickle and returns its value. The caller must not change in until the next Decode or
// Reset. Like Python, it ignores bytes after the end of the pickle. It returns the error of Reserve as
// it is; all other errors are of class [model.ErrInvalid].
func (d *Decoder) Decode(in []byte) (Value, error) {
	d.Reset()
	if len(in) > math.MaxInt32 {
		return Value{}, fmt.Errorf("%w: pickle: %d bytes exceed the limit of %d", model.ErrInvalid, len(in), math.MaxInt32)
	}
	d.in = in
	for !d.end {
		if d.at == len(d.in) {
			return Value{}, d.failed(d.at, "the pickle ends without a STOP")
		}
		op := d.in[d.at]
		d.at++
		if err := d.step(op); err != nil {
			return Value{}, err
		}
	}
	return d.stack[len(d.stack)-1], nil
}

// fail returns an error about the last opcode or its argument.
func (d *Decoder) fail(format string, args ...any) error {
	return d.failed(d.at, format, args...)
}

func (d *Decoder) failed(at int, format string, args ...any) error {
	return fmt.Errorf("%w: pickle: byte %d of %d: %s", model.ErrInvalid, at, len(d.in), fmt.Sprintf(format, args...))
}

// step executes one opcode. The opcodes of points in binary pickles come first.
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

// rareStep executes the opcodes that occur once per pickle, or in protocol 0 only.
func (d *Decoder) rareStep(op byte) error {
	switch op {
	case opProto:
		v, err := d.integer(1)
		if err == nil && v > maxProtocol {
			return d.fail("protocol %d is not supported, the newest supported one is %d", v, maxProtocol)
		}
		return err
	case opFrame:
		// A reader of a stream would fetch that many bytes; here the whole pickle is in memory.
		n, err := d.integer(8)
		if err == nil && n > uint64(len(d.in)-d.at) {
			return d.fail("FRAME of length %d, with only %d left", n, len(d.in)-d.at)
		}
		return err
	case opStop:
		if len(d.stack) == d.fence {
			return d.fail("STOP without a value to return")
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
	if d.Dicts {
		switch op {
		case opEmptyDict:
			return d.dict(0)
		case opDict, opSetItems:
			n, err := d.unmark()
			if err != nil {
				return err
			}
			if op == opSetItems {
				return d.set(n)
			}
			return d.dict(n)
		case opSetItem:
			return d.set(2)
		}
	}
	if name := refused(op); name != "" {
		return d.fail("opcode %s (%#02x) is not allowed: a list of points does not need it", name, op)
	}
	return d.fail("%#02x is not an opcode", op)
}
