package syntax

import (
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/alloctest"
)

// TestTreeBytes: a tree takes at most TreeBytes.
func TestTreeBytes(t *testing.T) {
	alloctest.Counts(t)
	const n = 100_000
	for name, target := range map[string]string{
		"paths":        "f(" + strings.Repeat("a,", n) + "a)",
		"calls":        "f(" + strings.Repeat("a(),", n) + "a)",
		"numbers":      "f(a," + strings.Repeat("9,", n) + "9)",
		"large":        "f(a," + strings.Repeat("999,", n) + "9)",
		"floats":       "f(a," + strings.Repeat("1.5,", n) + "9)",
		"strings":      "f(a," + strings.Repeat("'',", n) + "'')",
		"words":        "f(a," + strings.Repeat("true,", n) + "true)",
		"named":        "f(a," + strings.Repeat("a=1,", n) + "a=1)",
		"escapes":      strings.Repeat(`\,`, n) + "a",
		"of templates": "template(a," + strings.Repeat("1,", n) + "1)",
		"a path":       strings.Repeat("a", n),
		"pipes":        "a" + strings.Repeat("|f(1)", 90),
		"nested":       strings.Repeat("f(", 90) + strings.Repeat("a,", n) + "a" + strings.Repeat(")", 90),
	} {
		got := alloctest.Live(func() any {
			e, err := Parse(target)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return e
		})
		t.Logf("%s: %.1f bytes for each", name, float64(got)/float64(len(target)))
		if most := TreeBytes(target) + 4096; got > most {
			t.Errorf("%s: a target of %d bytes takes %d, want at most %d", name, len(target), got, most)
		}
	}
}
