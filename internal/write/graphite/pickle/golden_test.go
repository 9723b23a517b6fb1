package pickle_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/graphite/pickle"
)

// golden is one line of testdata/golden.txt.
type golden struct {
	name, writer string
	pickle       []byte
	content      string
}

func readGolden(t testing.TB) (list []golden) {
	t.Helper()
	text, err := os.ReadFile("testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	content := ""
	for line := range strings.Lines(string(text)) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		b, err := hex.DecodeString(columns[2])
		if err != nil || len(columns) != 6 {
			t.Fatalf("line %d: %v", len(list)+1, err)
		}
		if columns[3] != `"` {
			content = columns[3]
		}
		list = append(list, golden{columns[0], columns[1], b, content})
	}
	return list
}

func newDecoder() *pickle.Decoder {
	return &pickle.Decoder{
		Float: func(text []byte) (float64, bool) {
			f, err := strconv.ParseFloat(string(text), 64)
			return f, err == nil || errors.Is(err, strconv.ErrRange)
		},
		Reserve: func(int) error { return nil },
	}
}

// dump writes a value as make_golden.py does.
func dump(d *pickle.Decoder, v pickle.Value, depth int) string {
	if depth > 8 {
		return "?"
	}
	switch v.Kind() {
	case pickle.None:
		return "N"
	case pickle.Number:
		if f := v.Float(); f != f {
			return "nan"
		}
		return fmt.Sprintf("n%016x", math.Float64bits(v.Float()))
	case pickle.Huge:
		return "H"
	case pickle.Text:
		return fmt.Sprintf("x%x", d.Text(v))
	case pickle.Tuple, pickle.List:
		var parts []string
		e := d.Elements(v)
		for el, ok := e.Next(); ok; el, ok = e.Next() {
			parts = append(parts, dump(d, el, depth+1))
		}
		if len(parts) != d.Len(v) {
			return fmt.Sprintf("%d elements where Len says %d", len(parts), d.Len(v))
		}
		if v.Kind() == pickle.List {
			return "[" + strings.Join(parts, " ") + "]"
		}
		return "(" + strings.Join(parts, " ") + ")"
	}
	return "absent"
}

// TestRealPickles decodes what real Pythons and other writers wrote, all with one decoder.
func TestRealPickles(t *testing.T) {
	d := newDecoder()
	refusals := map[string]int{}
	for _, g := range readGolden(t) {
		want := g.content
		if g.name == "bytes" && strings.Contains("012", g.writer[len(g.writer)-1:]) {
			want = "!" // before protocol 3, Python 3 writes bytes as a call
		}
		want = strings.NewReplacer("nfff8000000000000", "nan", "n7ff8000000000000", "nan").Replace(want)
		v, err := d.Decode(g.pickle)
		switch {
		case g.name == "nested-tuples" && strings.Contains("01", g.writer[len(g.writer)-1:]):
			// These protocols open a hundred tuples before they close the first.
			if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "nested MARKs") {
				t.Errorf("%s by %s: %v", g.name, g.writer, err)
			}
		case want == "!":
			if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "opcode ") || !strings.Contains(err.Error(), " is not allowed") {
				t.Errorf("%s by %s: %v", g.name, g.writer, err)
				continue
			}
			_, after, _ := strings.Cut(err.Error(), "opcode ")
			name, _, _ := strings.Cut(after, " ")
			refusals[name]++
		case err != nil:
			t.Errorf("%s by %s: %v", g.name, g.writer, err)
		default:
			got := dump(d, v, 0)
			if len(got) > 10000 {
				got = fmt.Sprintf("#%08x", crc32.ChecksumIEEE([]byte(got)))
			}
			if got != want {
				t.Errorf("%s by %s: got %.300s\nwant %.300s", g.name, g.writer, got, want)
			}
		}
	}
	for _, name := range []string{"GLOBAL", "STACK_GLOBAL", "DICT", "EMPTY_DICT", "EMPTY_SET"} {
		if refusals[name] == 0 {
			t.Errorf("no pickle was refused for %s: %v", name, refusals)
		}
	}
}
