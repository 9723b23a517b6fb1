package promqltest

import "strings"

// section is the part of a test file between two clear commands. It starts from an empty storage, so it can be run
// alone.
type section struct {
	file        string
	first, last int // lines, from 1
	evals       int
	text        string // with empty lines before it, so that messages name the lines of the file
	// needs says what the section needs that the engine does not have; empty if it can be run.
	needs string
}

// cutFile cuts a test file into its sections. Those without a command are dropped.
func cutFile(file, text string) []section {
	lines := strings.Split(text, "\n")
	var out []section
	begin := 0
	for i := 0; i <= len(lines); i++ {
		if i < len(lines) && strings.TrimSpace(lines[i]) != "clear" {
			continue
		}
		if s, ok := newSection(file, lines[begin:i], begin); ok {
			out = append(out, s)
		}
		begin = i + 1
	}
	return out
}

func newSection(file string, lines []string, before int) (section, bool) {
	s := section{file: file, last: before + len(lines)}
	first := 0 // the line of the first command
	for i, l := range lines {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "#") {
			continue
		}
		isEval, isLoad := strings.HasPrefix(l, "eval"), strings.HasPrefix(l, "load")
		if (isEval || isLoad) && first == 0 {
			first = before + i + 1
		}
		if isEval {
			s.evals++
		}
		switch {
		case strings.HasPrefix(l, "load_with_nhcb"):
			s.needs = "loads histograms with custom buckets"
		case s.needs == "" && strings.Contains(l, "{{"):
			s.needs = "native histograms"
		}
	}
	s.first = first
	s.text = strings.Repeat("\n", before) + strings.Join(lines, "\n")
	return s, first > 0
}
