package result

import (
	"fmt"
	"slices"
	"strings"
)

// Table writes the figures of a load as a Markdown table: a line for each system, a column for each figure
// that at least one system has. A cell is the median, and the range if there are several runs.
func Table(groups []*Group, columns []string) string {
	var sb strings.Builder
	columns = slices.DeleteFunc(slices.Clone(columns), func(c string) bool {
		return !slices.ContainsFunc(groups, func(g *Group) bool { return g.Stat(c).N > 0 })
	})
	sb.WriteString("| system | runs |")
	for _, c := range columns {
		u, _ := unitOf(c)
		fmt.Fprintf(&sb, " %s |", u.title)
	}
	sb.WriteString("\n|---|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, g := range groups {
		fmt.Fprintf(&sb, "| %s | %d |", g.System, len(g.Records))
		for _, c := range columns {
			fmt.Fprintf(&sb, " %s |", Cell(c, g.Stat(c)))
		}
		sb.WriteString("\n")
	}
	return sb.String()
}

// Cell writes the median of a figure, and the range if there is one.
func Cell(name string, s Stat) string {
	u, ok := unitOf(name)
	if s.N == 0 || !ok {
		return "–"
	}
	if s.N == 1 || u.write(s.Least) == u.write(s.Most) {
		return u.write(s.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", u.write(s.Median), u.write(s.Least), u.write(s.Most))
}

// Remarks lists errors, and notes with the number of runs that have them.
func Remarks(groups []*Group) string {
	var sb strings.Builder
	for _, g := range groups {
		if n, last := g.failed(); n > 0 {
			fmt.Fprintf(&sb, "- %s: %d of %d runs failed: %s\n", g.System, n, len(g.Records), last)
		}
		var notes []string
		times := map[string]int{}
		for _, r := range g.Records {
			for _, n := range r.Notes {
				if times[n]++; times[n] == 1 {
					notes = append(notes, n)
				}
			}
		}
		for _, n := range notes {
			fmt.Fprintf(&sb, "- %s, %d of %d runs: %s\n", g.System, times[n], len(g.Records), n)
		}
	}
	return sb.String()
}

// Compare writes the ratios of medians of the first system to the others, a line for each.
func Compare(groups []*Group, columns []string) string {
	var sb strings.Builder
	for _, g := range groups[min(1, len(groups)):] {
		var parts []string
		for _, c := range columns {
			u, _ := unitOf(c)
			a, b := groups[0].Stat(c), g.Stat(c)
			if (u.less || u.more) && a.N > 0 && b.N > 0 && b.Median != 0 {
				parts = append(parts, fmt.Sprintf("%s %.2f", u.title, a.Median/b.Median))
			}
		}
		if len(parts) > 0 {
			fmt.Fprintf(&sb, "%s over %s: %s.\n", groups[0].System, g.System, strings.Join(parts, ", "))
		}
	}
	return sb.String()
}
