package lines

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/parttest"
)

// lineShapes make lines in which values of all kinds stand.
var lineShapes = []func(r *rand.Rand) string{
	func(r *rand.Rand) string {
		return fmt.Sprintf(`{"ts":"2026-03-01T%02d:%02d:%02d.%03dZ","trace_id":"%016x%016x","n":%d,"msg":"it is %s"}`, r.IntN(24), r.IntN(60), r.IntN(60),
			r.IntN(1000), r.Uint64(), r.Uint64(), r.IntN(1_000_000), []string{"fine", "late", "BAD"}[r.IntN(3)])
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("%d.%d.%d.%d - - \"GET /v%d/items/%d HTTP/1.1\" %d %04x", r.IntN(256), r.IntN(256), r.IntN(256), r.IntN(256), r.IntN(3), r.Int64(), 200+r.IntN(300), r.IntN(1<<16))
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("id=%08x-%04x-%04X-%04x-%012x took %dms blk_%d", r.Uint32(), r.IntN(1<<16), r.IntN(1<<16), r.IntN(1<<16), r.Uint64()>>16, r.IntN(9000), -r.Int64())
	},
	func(r *rand.Rand) string { return strings.Repeat("0", r.IntN(25)) + fmt.Sprint(r.Uint64()) },
	func(r *rand.Rand) string { return strings.Repeat("f0", r.IntN(70)) },
	func(r *rand.Rand) string {
		return fmt.Sprintf("T%xZ K%dſ Ünïcödé %s", r.IntN(1<<20), r.IntN(100), string([]byte{byte(r.Uint32()), 0xff, 0}))
	},
	func(r *rand.Rand) string {
		b := make([]byte, r.IntN(80))
		for i := range b {
			b[i] = "0123456789abcdefABCDEFTZghxyXY.-: \x00\n\xff"[r.IntN(37)]
		}
		return string(b)
	},
	func(r *rand.Rand) string { return "" },
}

// randomLines makes n lines of one or all shapes.
func randomLines(r *rand.Rand, n, shape int) []string {
	lines := make([]string, n)
	for i := range lines {
		k := shape
		if k >= len(lineShapes) {
			k = r.IntN(len(lineShapes))
		}
		lines[i] = lineShapes[k](r)
	}
	return lines
}

// joinLines concatenates lines.
func joinLines(lines []string) (all []byte, ends []uint32) {
	for _, l := range lines {
		all = append(all, l...)
		ends = append(ends, uint32(len(all)))
	}
	return all, ends
}

// TestLinesComeBack: whatever the lines are, a page gives them back.
func TestLinesComeBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 3))
		lines := randomLines(r, rapid.SampledFrom([]int{1, 2, 30, 500}).Draw(rt, "lines"), rapid.IntRange(0, len(lineShapes)).Draw(rt, "shape"))
		all, ends := joinLines(lines)
		stored, err := Seal(nil, all, 0, ends, nil)
		parttest.Must(t, err)
		got, err := DecodePage(stored)
		parttest.Must(t, err)
		if !bytes.Equal(got, all) {
			rt.Fatalf("%q\nbecame %q", all, got)
		}
	})
}

// TestKnownFragments: the shortcut for known fragments gives the same page and filter as parsing each line.
func TestKnownFragments(t *testing.T) {
	var known, afresh coder
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 5))
		lines := randomLines(r, rapid.SampledFrom([]int{1, 2, 30, 500}).Draw(rt, "lines"), rapid.IntRange(0, len(lineShapes)).Draw(rt, "shape"))
		all, ends := joinLines(lines)
		var got, want Items
		got.Reset()
		want.Reset()
		known.Gather(all, 0, ends, &got)
		afresh.Gather(nil, 0, nil, &want)
		for _, l := range lines {
			line, frag, i, more := []byte(l), 0, 0, true
			for afresh.ctx = 0; more; {
				frag, i, more = afresh.nextValue(line, frag, i)
			}
			afresh.addFragment(line[frag:], fieldEnd, 0)
		}
		if known.steps != afresh.steps {
			rt.Fatalf("%d steps, should be %d", known.steps, afresh.steps)
		}
		a, _ := known.finish(nil)
		b, _ := afresh.finish(nil)
		if !bytes.Equal(a, b) {
			rt.Fatal("the pages differ")
		}
		for class := range got.Lists {
			if !slices.Equal(sorted(got.Lists[class]), sorted(want.Lists[class])) {
				rt.Fatalf("the items of class %d differ", class)
			}
		}
	})
}

// sorted are the items that there are, in order.
func sorted(items []uint64) []uint64 {
	items = slices.Clone(items)
	slices.Sort(items)
	return slices.Compact(items)
}

// folded changes the case of letters as Unicode's simple folding does.
func folded(r *rand.Rand, s string) string {
	return strings.Map(func(c rune) rune {
		if c == utf8.RuneError {
			return c
		}
		for range r.IntN(4) {
			c = unicode.SimpleFold(c)
		}
		return c
	}, s)
}

// TestFilterLosesNothing: no filter says of a line's substring that it is not there, nor of its metadata.
func TestFilterLosesNothing(t *testing.T) {
	found, without := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 4))
		shape := rapid.IntRange(0, len(lineShapes)).Draw(rt, "shape")
		lines := randomLines(r, rapid.SampledFrom([]int{1, 30, 300}).Draw(rt, "lines"), shape)
		all, ends := joinLines(lines)
		var items Items
		items.Reset()
		_, err := Seal(nil, all, 0, ends, &items)
		parttest.Must(t, err)
		items.Metadata(model.LabelsOf("a", "1", "trace", "xyz"))
		// A generous budget keeps all classes.
		filter := items.Append(nil, rapid.SampledFrom([]int{len(all), 100 * len(all)}).Draw(rt, "budget"))
		if len(filter) == 0 {
			return
		}
		for range 200 {
			l := lines[r.IntN(len(lines))]
			i := r.IntN(len(l) + 1)
			lit := model.TextLiteral{Value: l[i : i+r.IntN(len(l)-i+1)]}
			if r.IntN(3) == 0 && utf8.ValidString(lit.Value) {
				lit = model.TextLiteral{Value: folded(r, lit.Value), Fold: true}
			}
			if l := ItemsOf(&lit); len(l.Items) == 0 {
				continue
			}
			if ruledOut(t, &lit, filter) {
				rt.Fatalf("%+q (%t) is in the line %+q", lit.Value, lit.Fold, l)
			}
			found++
		}
		for _, c := range []struct {
			lit  model.TextLiteral
			none bool
		}{{model.TextLiteral{Name: "a", Value: "1"}, false}, {model.TextLiteral{Name: "trace", Value: "xyz"}, false}} {
			none := ruledOut(t, &c.lit, filter)
			if none {
				rt.Fatalf("%+v is there", c.lit)
			}
		}
		for range 50 {
			lit := model.TextLiteral{Value: fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64())}
			none := ruledOut(t, &lit, filter)
			if none {
				without++
			}
		}
	})
	if found == 0 || without == 0 {
		t.Fatalf("%d found, %d ruled out", found, without)
	}
}

// ruledOut reports whether a filter says that no line satisfies a literal.
func ruledOut(t *testing.T, lit *model.TextLiteral, filter []byte) bool {
	var f Filter
	parttest.Must(t, f.Open(filter))
	l := ItemsOf(lit)
	for i, item := range l.Items {
		if !f.Has(l.Classes[i], item) {
			return true
		}
	}
	return false
}
