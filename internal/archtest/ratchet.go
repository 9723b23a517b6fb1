package archtest

import (
	"fmt"
	"path"
	"sort"
	"strconv"
	"strings"
)

// breach names a rule that something breaks: a file, a function, a package or a page, and the unit that is
// counted.
type breach struct{ name, unit string }

// ratchet is the list of allowed breaches with their numbers. A number may fall, never rise.
type ratchet map[breach]int

// readRatchet reads lines of a name followed by numbers and units: "internal/a 31 files 5200 lines". # begins
// a comment.
func readRatchet(text string) (ratchet, error) {
	r := ratchet{}
	for line := range strings.Lines(text) {
		row, _, _ := strings.Cut(line, "#")
		f := strings.Fields(row)
		if len(f) == 0 {
			continue
		}
		if len(f)%2 == 0 {
			return nil, fmt.Errorf("ratchet: expected a name and pairs of number and unit, got %q", line)
		}
		for i := 1; i < len(f); i += 2 {
			n, err := strconv.Atoi(f[i])
			if err != nil {
				return nil, fmt.Errorf("ratchet: %q: %w", line, err)
			}
			r[breach{f[0], f[i+1]}] = n
		}
	}
	return r, nil
}

// String writes the rows in the form that readRatchet reads.
func (r ratchet) String() string {
	rows := map[string][]string{}
	for b, n := range r {
		if n > 0 {
			rows[b.name] = append(rows[b.name], fmt.Sprintf("%d %s", n, b.unit))
		}
	}
	var lines []string
	for name, pairs := range rows {
		sort.Slice(pairs, func(i, j int) bool {
			_, a, _ := strings.Cut(pairs[i], " ")
			_, b, _ := strings.Cut(pairs[j], " ")
			return a < b
		})
		lines = append(lines, name+" "+strings.Join(pairs, " ")+"\n")
	}
	sort.Strings(lines)
	return strings.Join(lines, "")
}

// raised returns the breaches of now that exceed the ratchet, in the order of their names.
func (r ratchet) raised(now ratchet) []breach {
	var bad []breach
	for b, n := range now {
		if n > r[b] {
			bad = append(bad, b)
		}
	}
	sort.Slice(bad, func(i, j int) bool {
		if bad[i].name != bad[j].name {
			return bad[i].name < bad[j].name
		}
		return bad[i].unit < bad[j].unit
	})
	return bad
}

// lowered returns the ratchet tightened to now. It never raises a number and never adds a row.
func (r ratchet) lowered(now ratchet) ratchet {
	low := ratchet{}
	for b, n := range r {
		if n = min(n, now[b]); n > 0 {
			low[b] = n
		}
	}
	return low
}

// account returns the row that a breach counts against: its own, or else that of the nearest folder above.
// Code that moves to an inner package thus stays on the account of its room.
func (r ratchet) account(b breach) breach {
	for name := b.name; name != "."; name = path.Dir(name) {
		if _, ok := r[breach{name, b.unit}]; ok {
			return breach{name, b.unit}
		}
	}
	return b
}
