package load

import (
	"cmp"
	"fmt"
	"slices"
)

// Needle is a text to search for, and in how many lines it stands.
type Needle struct {
	Text string `json:"text"`
	// Regex says that the text is an expression: the lines differ.
	Regex bool `json:"regex,omitempty"`
	Lines int  `json:"lines"`
	// Apps are those whose lines have it.
	Apps []string `json:"apps,omitempty"`
}

// How many lines have what is rare.
const (
	rareLines = 9
	codeLines = 23
)

// rare is the text of which there are few lines, absent one that looks the same and stands nowhere.
func (l *Logs) rare() string   { return fmt.Sprintf("rare-id-%016x", draw(l.Seed^saltNeedle, 0, 0)) }
func (l *Logs) absent() string { return fmt.Sprintf("rare-id-%016x", draw(l.Seed^saltNeedle, 1, 0)) }

// needles draws where the needles stand, in the order of pushes.
func (l *Logs) needles() []needle {
	if l.Windows == 0 || len(l.Files) > 0 {
		return nil
	}
	var all []needle
	type spot struct {
		push int64
		line int
	}
	taken := map[spot]bool{}
	for i := range rareLines + codeLines {
		n := needle{text: " " + l.rare()}
		if i >= rareLines {
			n.text, n.group = fmt.Sprintf(" quux-%05d", draw(l.Seed^saltNeedle, 2, uint64(i))%100_000), 1
		}
		// A load of fewer lines than needles has fewer needles.
		for try := range uint64(100) {
			n.push = int64(draw(l.Seed^saltNeedle, uint64(3+i), 2*try) % uint64(l.Windows*l.nodes()))
			n.line = int(draw(l.Seed^saltNeedle, uint64(3+i), 2*try+1) % uint64(l.linesOfNode(int(n.push)%l.nodes())))
			if s := (spot{n.push, n.line}); !taken[s] {
				taken[s] = true
				all = append(all, n)
				break
			}
		}
	}
	slices.SortFunc(all, func(a, b needle) int { return cmp.Or(cmp.Compare(a.push, b.push), cmp.Compare(a.line, b.line)) })
	return all
}

// linesOfNode returns how many lines of its own a push of a node has.
func (l *Logs) linesOfNode(node int) (n int) {
	from, to := l.streamsOf(node)
	for s := from; s < to; s++ {
		n += l.linesOf(s)
	}
	return n
}

// Needles lists what can be searched for, and what a search must find of the whole load.
func (l *Logs) Needles() []Needle {
	out := []Needle{{Text: l.rare()}, {Text: "quux-[0-9]{5}", Regex: true}, {Text: l.absent()}}
	all := l.needles()
	if len(all) == 0 {
		return nil
	}
	for _, n := range all {
		node := int(n.push % int64(l.nodes()))
		from, _ := l.streamsOf(node)
		line := n.line
		for ; line >= l.linesOf(from); from++ {
			line -= l.linesOf(from)
		}
		app, _ := l.pod(from)
		to := &out[n.group]
		to.Lines++
		if name := l.appName(app); !slices.Contains(to.Apps, name) {
			to.Apps = append(to.Apps, name)
		}
	}
	for i := range out {
		slices.Sort(out[i].Apps)
	}
	return out
}
