//go:build e2e

package e2e

import "testing"

// TestSecondsOfRows: where the file has rounded to the half of a second, the server's rounding is accepted,
// and nothing else.
func TestSecondsOfRows(t *testing.T) {
	for name, c := range map[string]struct {
		rows []csvRow
		got  []sample
		same bool
	}{
		"down":             {[]csvRow{{3500, 1}, {4500, 2}}, []sample{{3000, 1}, {4000, 2}}, true},
		"up":               {[]csvRow{{3500, 1}, {4499, 2}}, []sample{{4000, 1}, {5000, 2}}, true},
		"all equal, up":    {[]csvRow{{3500, 1}, {4500, 1}, {5500, 1}}, []sample{{4000, 1}, {5000, 1}, {6000, 1}}, true},
		"all equal, down":  {[]csvRow{{3500, 1}, {4500, 1}, {5500, 1}}, []sample{{3000, 1}, {4000, 1}, {5000, 1}}, true},
		"the later stays":  {[]csvRow{{3500, 1}, {4499, 2}}, []sample{{4000, 2}}, true},
		"lost":             {[]csvRow{{3300, 1}, {4300, 2}}, []sample{{4000, 2}}, false},
		"lost at the half": {[]csvRow{{3500, 1}, {4500, 2}, {6500, 3}}, []sample{{3000, 1}, {6000, 3}}, false},
		"another value":    {[]csvRow{{3500, 1}}, []sample{{3000, 2}}, false},
		"another second":   {[]csvRow{{3400, 1}}, []sample{{4000, 1}}, false},
	} {
		column := csvColumn{rows: c.rows}
		if d := diffColumn(column.seconds(c.got), c.got, 1); (d == "") != c.same {
			t.Errorf("%s: %q", name, d)
		}
	}
}
