package rules

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/carbonconf"
	"github.com/shaledb/shale/internal/pyregexp"
)

// maxFrequency bounds the seconds of an interval: a year.
const maxFrequency = 366 * 24 * 3600

// Aggregation is a rule of aggregation-rules.conf.
type Aggregation struct {
	Method    Method
	Frequency int64 // seconds
	template  []field
	matcher   *pyregexp.Regexp
}

// field is a part of a template: text, or a group if that is not 0.
type field struct {
	text  string
	group int
}

// Aggregations are the rules of a file.
type Aggregations []*Aggregation

// Outputs returns the paths of the aggregates that a path belongs to.
func (all Aggregations) Outputs(path string) (outputs []string, err error) {
	for _, r := range all {
		out, ok, err := r.Output(path)
		if err != nil {
			return nil, err
		}
		if ok {
			outputs = append(outputs, out)
		}
	}
	return outputs, nil
}

// ParseAggregations parses a file.
func ParseAggregations(path string, text []byte) (Aggregations, error) {
	var rules Aggregations
	err := carbonconf.Lines(path, text, func(n int, line string) error {
		r, err := parseAggregation(line)
		if err != nil {
			return carbonconf.Errorf(path, n, "%w", err)
		}
		rules = append(rules, r)
		return nil
	})
	return rules, err
}

func parseAggregation(line string) (*Aggregation, error) {
	left, right, ok := strings.Cut(line, "=")
	output, input := strings.Fields(left), strings.Fields(right)
	if !ok || len(output) != 2 || len(input) != 2 {
		return nil, fmt.Errorf("expected output (seconds) = method input, found %q", carbonconf.Short(line))
	}
	r := &Aggregation{Method: methodOf(input[0])}
	if r.Method == 0 {
		return nil, fmt.Errorf("expected a method such as sum or p95, found %q; the methods are %s", carbonconf.Short(input[0]), strings.Join(methodNames[1:], " "))
	}
	seconds, err := strconv.ParseInt(strings.TrimRight(strings.TrimLeft(output[1], "("), ")"), 10, 64)
	if err != nil || seconds < 1 || seconds > maxFrequency {
		return nil, fmt.Errorf("expected from 1 to %d seconds such as (60), found %q", maxFrequency, carbonconf.Short(output[1]))
	}
	r.Frequency = seconds
	text := "^(?:" + inputPattern(input[1]) + "$)"
	if r.matcher, err = pyregexp.Compile(text, false); err != nil {
		return nil, err
	}
	r.template, err = parseTemplate(output[0], r.matcher)
	return r, err
}

// inputPattern makes the regular expression of an input. Nodes are handled one by one, so a field cannot
// span a dot of the pattern, and each node may have one field.
func inputPattern(input string) string {
	nodes := strings.Split(input, ".")
	for i, node := range nodes {
		open, end, class := "<", ">", `[^.]+?`
		if strings.Contains(node, "<<") && strings.Contains(node, ">>") {
			open, end, class = "<<", ">>", `.+?`
		}
		a, b := strings.Index(node, open), strings.Index(node, end)
		switch {
		case a >= 0 && b > a:
			nodes[i] = node[:a] + "(?P<" + node[a+len(open):b] + ">" + class + ")" + node[b+len(end):]
		case node == "*":
			nodes[i] = `[^.]+`
		default:
			nodes[i] = strings.ReplaceAll(node, "*", `[^.]*`)
		}
	}
	return strings.Join(nodes, `\.`)
}

// parseTemplate parses an output. Its fields must be groups of the input.
func parseTemplate(output string, input *pyregexp.Regexp) (parts []field, err error) {
	for output != "" {
		text, rest, more := strings.Cut(output, "<")
		if text != "" {
			parts = append(parts, field{text: text})
		}
		if !more {
			break
		}
		name, after, ok := strings.Cut(rest, ">")
		if !ok {
			return nil, fmt.Errorf("the field <%s of the output has no end", carbonconf.Short(rest))
		}
		group := input.Group(name)
		if group < 0 {
			return nil, fmt.Errorf("the output has the field <%s>, which the input lacks", carbonconf.Short(name))
		}
		parts, output = append(parts, field{group: group}), after
	}
	return parts, nil
}

// Output returns the path of the aggregate that a path belongs to. It reports false if there is none.
func (r *Aggregation) Output(path string) (string, bool, error) {
	if ok, err := r.matcher.Search(path); !ok || err != nil {
		return "", false, err
	}
	groups, ok, err := r.matcher.Groups(path)
	if !ok || err != nil {
		return "", false, err
	}
	var b strings.Builder
	for _, f := range r.template {
		if f.group > 0 {
			b.WriteString(groups[f.group])
		} else {
			b.WriteString(f.text)
		}
	}
	return b.String(), true, nil
}
