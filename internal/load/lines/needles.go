package lines

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/load/random"
)

// Needle is a text to search for, and the number of lines that contain it.
type Needle struct {
	Text string `json:"text"`
	// Regex says that the text is a regular expression, because the lines differ.
	Regex bool `json:"regex,omitempty"`
	Lines int  `json:"lines"`
	// Apps are the apps whose lines contain it.
	Apps []string `json:"apps,omitempty"`
}

// WriteText writes a line about the needle for people.
func (n *Needle) WriteText(w io.Writer) {
	apps := ""
	if len(n.Apps) > 0 {
		apps = " of " + strings.Join(n.Apps, ", ")
	}
	fmt.Fprintf(w, "  searchable: %s, in %d lines%s\n", n.Text, n.Lines, apps)
}

// How many lines contain each rare text.
const (
	RareLines = 9
	CodeLines = 23
)

// rare is the text of few lines; absent looks the same and is in no line.
func (l *Shape) rare() string {
	return fmt.Sprintf("rare-id-%016x", random.Draw(l.Seed^saltNeedle, 0, 0))
}
func (l *Shape) absent() string {
	return fmt.Sprintf("rare-id-%016x", random.Draw(l.Seed^saltNeedle, 1, 0))
}

// needles draws the lines of the needles, in the order of pushes.
func (l *Shape) needles() []needle {
	if l.Windows == 0 || len(l.Files) > 0 {
		return nil
	}
	var all []needle
	type spot struct {
		push int64
		line int
	}
	taken := map[spot]bool{}
	for i := range RareLines + CodeLines {
		n := needle{text: " " + l.rare()}
		if i >= RareLines {
			n.text, n.group = fmt.Sprintf(" quux-%05d", random.Draw(l.Seed^saltNeedle, 2, uint64(i))%100_000), 1
		}
		// A load of fewer lines than needles has fewer needles.
		for try := range uint64(100) {
			n.push = int64(random.Draw(l.Seed^saltNeedle, uint64(3+i), 2*try) % uint64(l.Windows*l.Nodes()))
			n.line = int(random.Draw(l.Seed^saltNeedle, uint64(3+i), 2*try+1) % uint64(l.linesOfNode(int(n.push)%l.Nodes())))
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

// linesOfNode returns how many lines a push of a node has, repeats not counted.
func (l *Shape) linesOfNode(node int) (n int) {
	from, to := l.StreamsOf(node)
	for s := from; s < to; s++ {
		n += l.linesOf(s)
	}
	return n
}

// Needles lists texts to search for, and how many lines a search of the whole load must find.
func (l *Shape) Needles() []Needle {
	out := []Needle{{Text: l.rare()}, {Text: "quux-[0-9]{5}", Regex: true}, {Text: l.absent()}}
	all := l.needles()
	if len(all) == 0 {
		return nil
	}
	for _, n := range all {
		node := int(n.push % int64(l.Nodes()))
		from, _ := l.StreamsOf(node)
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
