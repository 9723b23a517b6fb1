package policy

import (
	"fmt"
	"slices"
	"strings"
)

// mostSteps is how many lengths of slots the series of one block may have: see package compact.
const mostSteps = 16

// Warnings says what of the files has no effect, or less than it seems to have.
func (p *Policies) Warnings() []string {
	var all []string
	first := map[string]string{} // the first section with each pattern
	for i := range p.schemas {
		if s := &p.schemas[i]; s.pattern != nil {
			all = append(all, hidden(first, "storage-schemas", s.name, s.text)...)
		}
	}
	clear(first)
	for i := range p.aggregations {
		if a := &p.aggregations[i]; a.pattern != nil {
			all = append(all, hidden(first, "storage-aggregation", a.name, a.text)...)
		}
	}
	for i := range p.schemas {
		q := Policy{Archives: p.schemas[i].archives}
		for k := 1; k < len(q.Archives); k++ {
			if a := q.Archives[k]; !q.HasRollups(k) {
				all = append(all, fmt.Sprintf("storage-schemas: section %s: the archive of %d s has no rollups, since its step does not divide a day: what it has of the time before retention comes from finer archives that have some",
					p.schemas[i].name, a.Step))
			}
		}
	}
	if n := len(p.RollupSteps()); n > mostSteps {
		all = append(all, fmt.Sprintf("storage-schemas: the archives have %d different steps: a block whose series have more than %d of them gets no rollups", n, mostSteps))
	}
	return all
}

// hidden warns of a section that no name reaches, and notes its pattern.
func hidden(first map[string]string, file, name, pattern string) []string {
	for _, by := range []string{"", pattern} { // "": of every name
		if before, ok := first[by]; ok {
			return []string{fmt.Sprintf("%s: section %s never applies: section %s before it takes all of its names", file, name, before)}
		}
	}
	if everyName(pattern) {
		first[""] = name
	}
	first[pattern] = name
	return nil
}

// everyName reports whether a pattern is one of those that people write to match every name.
func everyName(pattern string) bool {
	pattern = strings.TrimSuffix(strings.TrimPrefix(pattern, "^"), "$")
	return slices.Contains([]string{"", ".", ".*", ".+", "(.*)", "(.+)"}, pattern)
}
