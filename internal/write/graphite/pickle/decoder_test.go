package pickle_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/graphite/pickle"
)

func TestBrokenPickles(t *testing.T) {
	for in, want := range map[string]string{
		"":                                       "byte 0 of 0: the pickle ends without a STOP",
		"]":                                      "byte 1 of 1: the pickle ends without a STOP",
		".":                                      "byte 1 of 1: STOP without a value to return",
		"](.":                                    "STOP without a value to return",
		"\x80\x06].":                             "protocol 6 is not supported, the newest supported one is 5",
		"\x80":                                   "expected a length of 1, with 0 left",
		"cos\nsystem\n(S'ls'\ntR.":               "byte 1 of 21: opcode GLOBAL (0x63) is not allowed",
		"ios\nsystem\n.":                         "opcode INST",
		"\x8c\x02os\x8c\x06getcwd\x93)R.":        "opcode STACK_GLOBAL (0x93)",
		"]R.":                                    "opcode REDUCE",
		"]b.":                                    "opcode BUILD",
		"(o.":                                    "opcode OBJ",
		"]]\x81.":                                "opcode NEWOBJ (0x81)",
		"\x82\x01.":                              "opcode EXT1",
		"\x83\x01\x00.":                          "opcode EXT2",
		"\x84\x01\x00\x00\x00.":                  "opcode EXT4",
		"\x92.":                                  "opcode NEWOBJ_EX",
		"Px\n.":                                  "opcode PERSID",
		"]Q.":                                    "opcode BINPERSID",
		"}.":                                     "opcode EMPTY_DICT",
		"(d.":                                    "opcode DICT",
		"]s.":                                    "opcode SETITEM ",
		"]u.":                                    "opcode SETITEMS",
		"]0.":                                    "opcode POP ",
		"]1.":                                    "opcode POP_MARK",
		"]2.":                                    "opcode DUP",
		"\x8f.":                                  "opcode EMPTY_SET",
		"\x90.":                                  "opcode ADDITEMS",
		"\x91.":                                  "opcode FROZENSET",
		"\x96.":                                  "opcode BYTEARRAY8",
		"\x97.":                                  "opcode NEXT_BUFFER",
		"\x98.":                                  "opcode READONLY_BUFFER",
		"\x00.":                                  "0x00 is not an opcode",
		"\xff.":                                  "0xff is not an opcode",
		"t.":                                     "no MARK",
		"e.":                                     "no MARK",
		"l.":                                     "no MARK",
		"K\x01\x86.":                             "expected 2 values on the stack, got 1",
		"K\x01(K\x02\x86.":                       "expected 2 values on the stack, got 1",
		"K\x01a.":                                "APPEND or APPENDS to a value that is not a list",
		"K\x01K\x02a.":                           "APPEND or APPENDS to a value that is not a list",
		"](K\x02a.":                              "APPEND or APPENDS to a value that is not a list",
		"K\x01(K\x02e.":                          "APPEND or APPENDS to a value that is not a list",
		"q\x00.":                                 "PUT, BINPUT or MEMOIZE without a value",
		"](\x94.":                                "PUT, BINPUT or MEMOIZE without a value",
		"]r\xff\xff\xff\xff.":                    "the memo index 4294967295 is too large",
		"]p99999\n.":                             "the memo index 99999 is too large",
		"]p-1\n.":                                "is not a number",
		"h\x00.":                                 "the memo has no value at index 0",
		"]q\x02h\x01.":                           "the memo has no value at index 1",
		"g18446744073709551616\n.":               "is not a number",
		"X\xff\xff\xff\x7fabc":                   "expected a length of 2147483647, with 3 left",
		"\x8d\xff\xff\xff\xff\xff\xff\xff\xffa.": "expected a length of 18446744073709551615, with 2 left",
		"\x95\x03\x00\x00\x00\x00\x00\x00\x00].": "FRAME of length 3, with only 2 left",
		"\x8b\xff\xff\xff\xff.":                  "expected a length of 4294967295",
		"G1234567":                               "expected a length of 8, with 7 left",
		"I5":                                     "a line has no newline",
		"I0x5\n.":                                "is not an integer",
		"I\n.":                                   "is not an integer",
		"I-\n.":                                  "is not an integer",
		"I1-2\n.":                                "is not an integer",
		"I5L\n.":                                 "is not an integer",
		"F1,5\n.":                                "is not a float",
		"F\n.":                                   "is not a float",
		"Sabc\n.":                                "STRING without quotes",
		"S'\n.":                                  "STRING without quotes",
		"S'a\"\n.":                               "STRING without quotes",
		"S'\\x4'\n.":                             "STRING with a broken escape",
		"S'\\xgg'\n.":                            "STRING with a broken escape",
		"S'\\'\n.":                               "STRING with a broken escape",
		"V\\u004\n.":                             "UNICODE with a broken escape",
		"V\\U00110000\n.":                        "UNICODE with a broken escape",
		"V\\ug000\n.":                            "UNICODE with a broken escape",
		strings.Repeat("(", 33):                  "more than 32 nested MARKs",
	} {
		v, err := newDecoder().Decode([]byte(in))
		if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", in, v.Kind(), err, want)
		}
	}
}

func TestWholePickles(t *testing.T) {
	for in, want := range map[string]string{
		"]. and more":                           "[]",
		"(((((((.":                              "",
		"(K\x01K\x02l.":                         "[n3ff0000000000000 n4000000000000000]",
		"](K\x01eK\x02a(e(K\x03K\x04e.":         "[n3ff0000000000000 n4000000000000000 n4008000000000000 n4010000000000000]",
		"]K\x01a]K\x02aaK\x03a.":                "[n3ff0000000000000 [n4000000000000000] n4008000000000000]",
		"]q\x01K\x01ah\x01a.":                   "[n3ff0000000000000 [n3ff0000000000000 [n3ff0000000000000 [n3ff0000000000000 [n3ff0000000000000 [n3ff0000000000000 [n3ff0000000000000 [n3ff0000000000000 [? ?]]]]]]]]]",
		"K\x05":                                 "",
		"(I01\nI00\nI-7\nI+7\nL5\nL-5L\nt.":     "(n3ff0000000000000 n0000000000000000 nc01c000000000000 n401c000000000000 n4014000000000000 nc014000000000000)",
		"L" + strings.Repeat("9", 400) + "L\n.": "H",
		"(\x8a\x00\x8a\x01\xff\x8b\x09\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00t.": "(n0000000000000000 nbff0000000000000 n43f0000000000000)",
		"\x8b\x0a\x00\x00\x00\xfe\xff\xff\xff\xff\xff\xff\xff\xff\xff.":                   "nc000000000000000",
		"\x8b\x2c\x01\x00\x00\x05" + strings.Repeat("\x00", 299) + ".":                    "n4014000000000000",
		"\x8b\x2c\x01\x00\x00\x05" + strings.Repeat("\xff", 299) + ".":                    "nc06f600000000000",
		"\x8b\x82\x00\x00\x00" + strings.Repeat("\x00", 129) + "\x01.":                    "H",
		"\x8b\x82\x00\x00\x00" + strings.Repeat("\x00", 129) + "\x80.":                    "H",
		"S'a\\'\\\"\\\\\\n\\x41\\101\\7\\q\\a\\b\\f\\r\\t\\v' \r\n.":                      "x6127225c0a4141075c7107080c0d090b",
		"S\"it's\"\n.":                             "x69742773",
		"V\\ud83d\\ude00\\ud83dx\n.":               "xf09f9880eda0bd78",
		"V\\\\u0041\xe9\\\n.":                      "x5c5c7530303431c3a95c",
		"X\x00\x00\x00\x00.":                       "x",
		"X\x00\x00\x00\x00X\x01\x00\x00\x00a\x86.": "(x x61)",
	} {
		d := newDecoder()
		v, err := d.Decode([]byte(in))
		if want == "" {
			if err == nil {
				t.Errorf("%q: %s, want an error", in, dump(d, v, 0))
			}
			continue
		}
		if got := dump(d, v, 0); err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", in, got, err, want)
		}
	}
}

// TestMemoryIsAskedFor: small pickles that expand to huge values take only the memory that Reserve
// allows.
func TestMemoryIsAskedFor(t *testing.T) {
	full := errors.New("full")
	for name, in := range map[string]string{
		"lists":  strings.Repeat("]", 1<<20),
		"memo":   "]" + strings.Repeat("\x94", 1<<20),
		"place":  "]r\x00\x00\x10\x00" + strings.Repeat(".", 1<<20),
		"append": "]" + strings.Repeat("Na", 1<<19),
		"tuples": "N" + strings.Repeat("\x85", 1<<20),
		"text":   strings.Repeat("V\xe9\n", 1<<18),
	} {
		d := newDecoder()
		reserved := 0
		d.Reserve = func(n int) error {
			if n <= 0 {
				t.Errorf("%s: asks for %d bytes", name, n)
			}
			if reserved+n > 256<<10 {
				return full
			}
			reserved += n
			return nil
		}
		if _, err := d.Decode([]byte(in)); err != full {
			t.Errorf("%s: %v", name, err)
		}
		if m := d.Memory(); m > reserved || m > 256<<10 {
			t.Errorf("%s: %d bytes are used and %d were reserved", name, m, reserved)
		}
		// The next pickle reuses the memory without a call of Reserve.
		d.Reserve = func(n int) error { return fmt.Errorf("asks for %d bytes", n) }
		if name == "lists" {
			if _, err := d.Decode([]byte(strings.Repeat("]", 100) + ".")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestPair(t *testing.T) {
	for in, want := range map[string]bool{
		"K\x01K\x02\x86.": true, "(K\x01K\x02l.": true, "]K\x01aK\x02a.": true, "K\x01\x85.": false, "].": false, "X\x02\x00\x00\x00ab.": false,
	} {
		d := newDecoder()
		v, err := d.Decode([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		a, b, ok := d.Pair(v)
		if ok != want || ok && (a.Float() != 1 || b.Float() != 2) {
			t.Errorf("%q: %v, %v, %v", in, a, b, ok)
		}
	}
}

// encoder writes random values in all possible encodings.
type encoder struct {
	t    *rapid.T
	b    []byte
	memo []string // dumps of what is kept in the memo
}

func (e *encoder) choose(n int) int { return rapid.IntRange(0, n-1).Draw(e.t, "way") }

// keep may put what was just written into the memo.
func (e *encoder) keep(dump string) string {
	if e.choose(3) > 0 {
		return dump
	}
	switch n := len(e.memo); e.choose(4) {
	case 0:
		e.b = append(e.b, 0x94)
	case 1:
		e.b = append(e.b, 'q', byte(n))
	case 2:
		e.b = fmt.Appendf(e.b, "p%d\n", n)
	default:
		e.b = binary.LittleEndian.AppendUint32(append(e.b, 'r'), uint32(n))
	}
	e.memo = append(e.memo, dump)
	return dump
}

func (e *encoder) value(depth int) (dump string) {
	kind := e.choose(6)
	if depth == 0 {
		kind = e.choose(4)
	}
	switch kind {
	case 0:
		if n := len(e.memo); n > 0 && n < 256 {
			i := e.choose(n)
			e.b = append(e.b, 'h', byte(i))
			return e.memo[i]
		}
		e.b = append(e.b, 'N')
		return "N"
	case 1:
		return e.number()
	case 2, 3:
		return e.keep(e.text())
	case 4:
		return e.keep(e.tuple(depth))
	}
	return e.keep(e.list(depth))
}

func (e *encoder) number() string {
	v := int64(rapid.Int32().Draw(e.t, "v"))
	switch e.choose(5) {
	case 0:
		e.b = fmt.Appendf(e.b, "I%d\n", v)
	case 1:
		e.b = fmt.Appendf(e.b, "L%dL\n", v)
	case 2:
		e.b = binary.LittleEndian.AppendUint64(append(e.b, 0x8a, 8), uint64(v))
	case 3:
		e.b = binary.BigEndian.AppendUint64(append(e.b, 'G'), math.Float64bits(float64(v)))
	default:
		e.b = binary.LittleEndian.AppendUint32(append(e.b, 'J'), uint32(v))
	}
	return fmt.Sprintf("n%016x", math.Float64bits(float64(v)))
}

func (e *encoder) text() string {
	s := rapid.SliceOfN(rapid.ByteRange(0, 0x7f), 0, 6).Draw(e.t, "s")
	n := uint32(len(s))
	switch e.choose(6) {
	case 0:
		e.b = append(append(e.b, 0x8c, byte(n)), s...)
	case 1:
		e.b = append(binary.LittleEndian.AppendUint32(append(e.b, 'X'), n), s...)
	case 2:
		e.b = append(binary.LittleEndian.AppendUint64(append(e.b, 0x8e), uint64(n)), s...)
	case 3:
		e.b = append(e.b, "S'"...)
		for _, c := range s {
			e.b = fmt.Appendf(e.b, "\\x%02x", c)
		}
		e.b = append(e.b, "'\n"...)
	case 4:
		e.b = append(e.b, 'V')
		for _, c := range s {
			e.b = fmt.Appendf(e.b, "\\u%04x", c)
		}
		e.b = append(e.b, '\n')
	default:
		e.b = append(append(e.b, 'U', byte(n)), s...)
	}
	return fmt.Sprintf("x%x", s)
}

func (e *encoder) tuple(depth int) string {
	n := e.choose(4)
	marked := e.choose(2) == 0
	if marked {
		e.b = append(e.b, '(')
	}
	parts := e.values(n, depth)
	if marked {
		e.b = append(e.b, 't')
	} else {
		e.b = append(e.b, []byte{')', 0x85, 0x86, 0x87}[n])
	}
	return "(" + strings.Join(parts, " ") + ")"
}

func (e *encoder) list(depth int) string {
	var parts []string
	if e.choose(2) == 0 {
		e.b = append(e.b, '(')
		parts = e.values(e.choose(3), depth)
		e.b = append(e.b, 'l')
	} else {
		e.b = append(e.b, ']')
	}
	for range e.choose(4) {
		if e.choose(2) == 0 {
			parts = append(parts, e.values(1, depth)...)
			e.b = append(e.b, 'a')
			continue
		}
		e.b = append(e.b, '(')
		parts = append(parts, e.values(e.choose(4), depth)...)
		e.b = append(e.b, 'e')
	}
	return "[" + strings.Join(parts, " ") + "]"
}

func (e *encoder) values(n, depth int) (parts []string) {
	for range n {
		parts = append(parts, e.value(depth-1))
	}
	return parts
}

func TestRandomPickles(t *testing.T) {
	d := newDecoder()
	rapid.Check(t, func(t *rapid.T) {
		e := &encoder{t: t}
		want := e.value(4)
		e.b = append(e.b, '.')
		// A memo index must be below the length of the pickle.
		v, err := d.Decode(e.b)
		if err != nil {
			t.Fatalf("%q: %v", e.b, err)
		}
		if got := dump(d, v, 0); got != want {
			t.Fatalf("%q: got %s, want %s", e.b, got, want)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for i, g := range readGolden(f) {
		if len(g.pickle) < 500 && i%3 == 0 {
			f.Add(g.pickle)
		}
	}
	f.Add([]byte("]q\x01K\x01ah\x01a."))
	f.Fuzz(func(t *testing.T, in []byte) {
		d := newDecoder()
		reserved := 0
		d.Reserve = func(n int) error { reserved += n; return nil }
		v, err := d.Decode(in)
		if err != nil && !errors.Is(err, model.ErrInvalid) {
			t.Fatal(err)
		}
		// Each byte makes at most one value on the stack, which may move to a list or into the memo.
		// Slices double as they grow.
		if most := 200*len(in) + 16<<10; d.Memory() != reserved || reserved > most {
			t.Fatalf("%d bytes are used, %d reserved, for %d", d.Memory(), reserved, len(in))
		}
		if err != nil {
			return
		}
		first := walk(d, v, 4, new(int))
		again := newDecoder()
		w, err := again.Decode(append([]byte("\x80\x04"), in...))
		if second := walk(again, w, 4, new(int)); err != nil || first != second {
			t.Fatalf("%s, %v; want %s", second, err, first)
		}
	})
}

// walk is a dump that stops early, because a graph can have far more elements than the pickle has
// bytes.
func walk(d *pickle.Decoder, v pickle.Value, depth int, seen *int) string {
	if *seen++; *seen > 1000 || depth == 0 {
		return "?"
	}
	if v.Kind() != pickle.Tuple && v.Kind() != pickle.List {
		return dump(d, v, 0)
	}
	s := "("
	e := d.Elements(v)
	for el, ok := e.Next(); ok && *seen < 1000; el, ok = e.Next() {
		s += walk(d, el, depth-1, seen) + " "
	}
	return s + ")"
}

// points is a pickle of n points as carbon's relay sends them from Python 3: protocol 2, every text and
// tuple memoized.
func points(n int) []byte {
	b := []byte("\x80\x02]q\x00(")
	memo := uint32(0)
	put := func() {
		if memo++; memo < 256 {
			b = append(b, 'q', byte(memo))
		} else {
			b = binary.LittleEndian.AppendUint32(append(b, 'r'), memo)
		}
	}
	for i := range n {
		if i%1000 == 0 && i > 0 {
			b = append(b, "e("...)
		}
		name := fmt.Sprintf("haggar.agent.%d.metrics.%d", i/10_000, i%10_000)
		b = append(binary.LittleEndian.AppendUint32(append(b, 'X'), uint32(len(name))), name...)
		put()
		b = binary.LittleEndian.AppendUint32(append(b, 'J'), 1_700_000_000)
		b = binary.BigEndian.AppendUint64(append(b, 'G'), math.Float64bits(float64(i)/10))
		b = append(b, 0x86)
		put()
		b = append(b, 0x86)
		put()
	}
	return append(b, "e."...)
}

func TestDecodingAllocatesNothing(t *testing.T) {
	d, in := newDecoder(), points(5000)
	alloctest.AtMost(t, 0, 10, func() {
		if v, err := d.Decode(in); err != nil || d.Len(v) != 5000 {
			t.Fatal(err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	const n = 500 // carbon's relay sends that many at a time
	d, in := newDecoder(), points(n)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Decode(in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/point")
	b.ReportMetric(float64(len(in))/n, "bytes/point")
	b.ReportMetric(float64(d.Memory())/n, "memory/point")
}
