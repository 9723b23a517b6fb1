package line

import "github.com/shaledb/shale/internal/read/logql/syntax"

// choice names a label, under a condition on its value if match is set.
type choice struct {
	name  string
	match func(string) bool
}

func newChoices(all []syntax.LabelChoice) []choice {
	var out []choice
	for _, c := range all {
		x := choice{name: c.Name}
		if c.Matcher != nil {
			x.match = c.Matcher.Match
		}
		out = append(out, x)
	}
	return out
}

// dropper is | drop. The labels of errors are among those that it knows: that is how an error is forgotten.
type dropper []choice

func (d dropper) run(r *Runner, line []byte) ([]byte, bool) {
	l := &r.labels
	for i := range d {
		c := &d[i]
		switch c.name {
		case ErrorLabel:
			if c.match == nil || c.match(l.err) {
				l.err, l.metadataRaw = "", false
			}
		case ErrorDetailsLabel:
			if c.match == nil || c.match(l.details) {
				l.details, l.metadataRaw = "", false
			}
		default:
			v, ok := l.get(c.name)
			if c.match == nil && ok || c.match != nil && c.match(v) {
				l.del(c.name)
			}
		}
	}
	return line, true
}

// keeper is | keep. What is wrong with a line stays.
type keeper []choice

func (k keeper) run(r *Runner, line []byte) ([]byte, bool) {
	l := &r.labels
	l.sorted = l.all(l.sorted[:0])
	for i := range l.sorted {
		switch x := &l.sorted[i]; x.name {
		case ErrorLabel, ErrorDetailsLabel, preserveErrorLabel:
		default:
			if !k.keeps(x) {
				l.del(x.name)
			}
		}
	}
	return line, true
}

func (k keeper) keeps(x *label) bool {
	for i := range k {
		if k[i].name == x.name && (k[i].match == nil || k[i].match(x.value)) {
			return true
		}
	}
	return false
}
