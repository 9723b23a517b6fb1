package result

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// WriteGo writes the records of a system in the format of Go benchmarks for benchstat: a line for each run,
// with the figures of a load that keep selects.
func WriteGo(w io.Writer, records []Record, system string, keep func(load, figure string) bool) error {
	var sb strings.Builder
	units := map[string]bool{}
	for _, r := range records {
		if r.System != system || len(r.Values) == 0 {
			continue
		}
		if sb.Len() == 0 {
			fmt.Fprintf(&sb, "goos: linux\npkg: github.com/shaledb/shale/bench\ncpu: %s\n", r.Machine.CPU)
		}
		fmt.Fprintf(&sb, "BenchmarkLoad/%s-%d\t1", word(r.Load), r.Machine.Cores)
		for _, name := range slices.Sorted(maps.Keys(r.Values)) {
			if u, ok := unitOf(name); !ok || !u.less && !u.more || !keep(r.Load, name) {
				continue
			}
			units[name] = true
			fmt.Fprintf(&sb, "\t%g %s", r.Values[name], name)
		}
		sb.WriteString("\n")
	}
	for _, name := range slices.Sorted(maps.Keys(units)) {
		u, _ := unitOf(name)
		better := "lower"
		if u.more {
			better = "higher"
		}
		fmt.Fprintf(&sb, "Unit %s better=%s\n", name, better)
	}
	_, err := io.WriteString(w, sb.String())
	return err
}

// word makes one word of a name.
func word(name string) string { return strings.Join(strings.Fields(name), "_") }
