package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/shaledb/shale/internal/carbonconf"
	"github.com/shaledb/shale/internal/pyregexp"
)

// maxSections bounds the sections of a file, since each may be matched with each name of a query.
const maxSections = 4096

// Policies are the sections of both files. They never change, and several goroutines may use them.
type Policies struct {
	schemas      []schema
	aggregations []aggregation
	id           string
}

// ID names what the files say: two with one id give each name the same policy.
func (p *Policies) ID() string { return p.id }

type schema struct {
	name     string
	pattern  *pyregexp.Regexp // nil: every name
	text     string           // of the pattern
	archives []Archive
}

type aggregation struct {
	name    string
	pattern *pyregexp.Regexp // nil: every name
	text    string           // of the pattern
	method  Method
	xff     float32
}

// Parse parses the two files, which may be nil. Names that no section matches have the defaults of carbon:
// 60s:7d, average and 0.5.
func Parse(schemas, aggregations *carbonconf.File) (*Policies, error) {
	p := &Policies{}
	for _, s := range sections(schemas) {
		pattern, err := parsePattern(s)
		if err != nil {
			return nil, err
		}
		key := s.Get("retentions")
		if key == nil {
			return nil, s.Errorf(s.Line, "has no retentions")
		}
		archives, err := ParseRetentions(key.Value)
		if err != nil {
			return nil, s.Errorf(key.Line, "%w", err)
		}
		p.schemas = append(p.schemas, schema{s.Name, pattern, s.Get("pattern").Value, archives})
	}
	p.schemas = append(p.schemas, schema{archives: []Archive{{Step: 60, Points: 7 * 24 * 60}}})
	for _, s := range sections(aggregations) {
		a, err := parseAggregation(s)
		if err != nil {
			return nil, err
		}
		p.aggregations = append(p.aggregations, a)
	}
	p.aggregations = append(p.aggregations, aggregation{method: Average, xff: defaultXFilesFactor})
	p.id = idOf(schemas, aggregations)
	for _, f := range []*carbonconf.File{schemas, aggregations} {
		if all := sections(f); len(all) > maxSections {
			last := all[maxSections]
			return nil, last.Errorf(last.Line, "a file may have at most %d sections", maxSections)
		}
	}
	return p, nil
}

const defaultXFilesFactor = 0.5

// idOf hashes what counts of the files.
func idOf(schemas, aggregations *carbonconf.File) string {
	h := sha256.New()
	fmt.Fprint(h, "2") // 1: no row for a slot with too few points
	for _, f := range []*carbonconf.File{schemas, aggregations} {
		fmt.Fprint(h, "\n\n")
		for _, s := range sections(f) {
			for _, name := range []string{"pattern", "retentions", "aggregationmethod", "xfilesfactor"} {
				if key := s.Get(name); key != nil {
					fmt.Fprintf(h, "%s=%q\n", name, key.Value)
				}
			}
			fmt.Fprint(h, "\n")
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func sections(f *carbonconf.File) []*carbonconf.Section {
	if f == nil {
		return nil
	}
	return f.Sections
}

func parsePattern(s *carbonconf.Section) (*pyregexp.Regexp, error) {
	key := s.Get("pattern")
	if key == nil || key.Value == "" {
		return nil, s.Errorf(s.Line, "has no pattern")
	}
	re, err := pyregexp.Compile(key.Value, false)
	if err != nil {
		return nil, s.Errorf(key.Line, "%w", err)
	}
	return re, nil
}

func parseAggregation(s *carbonconf.Section) (a aggregation, err error) {
	a = aggregation{name: s.Name, method: Average, xff: defaultXFilesFactor}
	if a.pattern, err = parsePattern(s); err != nil {
		return a, err
	}
	a.text = s.Get("pattern").Value
	if key := s.Get("aggregationmethod"); key != nil {
		if a.method, err = ParseMethod(key.Value); err != nil {
			return a, s.Errorf(key.Line, "aggregationMethod: %w", err)
		}
	}
	if key := s.Get("xfilesfactor"); key != nil {
		f, err := strconv.ParseFloat(key.Value, 64)
		if err != nil || !(f >= 0 && f <= 1) {
			return a, s.Errorf(key.Line, "xFilesFactor: expected a number from 0 to 1, found %q", key.Value)
		}
		a.xff = float32(f)
	}
	return a, nil
}

// HaveRollups reports whether any archive of any schema has rollups.
func (p *Policies) HaveRollups() bool {
	for i := range p.schemas {
		q := Policy{Archives: p.schemas[i].archives}
		for k := range q.Archives {
			if q.HasRollups(k) {
				return true
			}
		}
	}
	return false
}

// RollupSteps returns the steps of all rollups that any schema has, in seconds, ascending.
func (p *Policies) RollupSteps() []int64 {
	var steps []int64
	for i := range p.schemas {
		q := Policy{Archives: p.schemas[i].archives}
		steps = append(steps, q.RollupSteps()...)
	}
	slices.Sort(steps)
	return slices.Compact(steps)
}

// KeepRollups returns for how many seconds rollups of a step are needed: as long as the archive of that step
// reaches back in any schema, or further ones that have no rollups of their own. For a step that no schema
// has any more, it is the longest time of all.
func (p *Policies) KeepRollups(step int64) int64 {
	var keep, longest int64
	for i := range p.schemas {
		q := Policy{Archives: p.schemas[i].archives}
		for k, a := range q.Archives {
			longest = max(longest, a.Retention())
			if a.Step != step {
				continue
			}
			keep = max(keep, a.Retention())
			for n := k + 1; n < len(q.Archives) && !q.HasRollups(n); n++ {
				keep = max(keep, q.Archives[n].Retention())
			}
		}
	}
	if keep == 0 {
		return longest
	}
	return keep
}

// Of returns the policy of a name: the first schema and the first aggregation whose pattern is found in it.
// An error says that a pattern took too long.
func (p *Policies) Of(name string) (Policy, error) {
	var q Policy
	for i := range p.schemas {
		s := &p.schemas[i]
		ok, err := found(s.pattern, name)
		if err != nil {
			return q, err
		}
		if ok {
			q.Schema, q.Archives = s.name, s.archives
			break
		}
	}
	for i := range p.aggregations {
		a := &p.aggregations[i]
		ok, err := found(a.pattern, name)
		if err != nil {
			return q, err
		}
		if ok {
			q.Aggregation, q.Method, q.XFilesFactor = a.name, a.method, a.xff
			break
		}
	}
	return q, nil
}

func found(pattern *pyregexp.Regexp, name string) (bool, error) {
	if pattern == nil {
		return true, nil
	}
	return pattern.Search(name)
}
