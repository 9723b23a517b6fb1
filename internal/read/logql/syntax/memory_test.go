package syntax

import (
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/alloctest"
)

// TestTreeBytes: the tree of a query takes at most the 64 bytes for each byte of its text that the API
// charges.
func TestTreeBytes(t *testing.T) {
	alloctest.Counts(t)
	const n, treeBytes = 10_000, 64
	for name, query := range map[string]string{
		"matchers":     `{a="b"` + strings.Repeat(`,a=""`, n) + `}`,
		"filters":      `{a="b"}` + strings.Repeat(`|="a"`, n),
		"alternatives": `{a="b"}|="a"` + strings.Repeat(`or"b"`, n),
		"stages":       `{a="b"}` + strings.Repeat(`|json`, n),
		"fields":       `{a="b"}|json a` + strings.Repeat(`,a`, n),
		"expressions":  `{a="b"}|json a="b"` + strings.Repeat(`,a="b"`, n),
		"conditions":   `{a="b"}|a="b"` + strings.Repeat(`,a=""`, n),
		"numbers":      `{a="b"}|a=1` + strings.Repeat(`,a=1`, n),
		"labels":       `{a="b"}|drop a` + strings.Repeat(`,a`, n),
		"formats":      `{a="b"}|label_format a=b` + strings.Repeat(`,a=b`, n),
		"grouping":     `sum by (a` + strings.Repeat(`,a`, n) + `)(rate({a="b"}[1m]))`,
		"additions":    strings.Repeat(`1+`, 1000) + `1`,
	} {
		got := alloctest.Live(func() any {
			e, err := Parse(query)
			if err != nil {
				t.Logf("%s: %v", name, err)
			}
			return e
		})
		t.Logf("%s: %.1f bytes for each", name, float64(got)/float64(len(query)))
		if most := int64(treeBytes*len(query) + 4096); got > most {
			t.Errorf("%s: a query of %d bytes takes %d, want at most %d", name, len(query), got, most)
		}
	}
}
