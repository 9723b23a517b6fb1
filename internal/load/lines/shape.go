package lines

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/random"
	"github.com/shaledb/shale/internal/model"
)

// Shape is the shape of a load of log lines: nodes with the pods that run on them, each pod with a stream for
// every level. The lines of a node in a window of time are one push. Every line is a pure function of the
// seed, its stream, its window, and its position there. With Files, the lines of files are sent instead, one
// stream for each file.
type Shape struct {
	Seed    uint64 `json:"seed"`
	Streams int    `json:"streams"`
	Pods    int    `json:"pods"`     // of each app
	PerNode int    `json:"per_node"` // streams of a node
	Lines   int    `json:"lines"`    // of a push, about
	Mix     Mix    `json:"mix,omitzero"`
	// Metadata is the share of lines with structured metadata, Equal the share of lines with the time of the
	// line before.
	Metadata float64 `json:"metadata,omitempty"`
	Equal    float64 `json:"equal,omitempty"`
	// Late is the share of lines with times before their window, by an eighth, a quarter, a half or all of By.
	// Twice is the share of lines that are sent again, half of them in the same push and half in the next one
	// of the node.
	Late  pace.Lateness `json:"late,omitzero"`
	Twice float64       `json:"twice,omitempty"`
	// Windows is the number of windows of each node; 0: unknown, and then there are no needles.
	Windows int `json:"windows,omitempty"`
	// Files are pushed as they are, Repeat times.
	Files  []File `json:"files,omitempty"`
	Repeat int    `json:"repeat,omitempty"`
}

// File is a file whose lines are pushed.
type File struct {
	Path  string `json:"path"`
	Lines int    `json:"lines"` // that it has
	Sum   uint32 `json:"sum"`   // CRC32C of its bytes, so that a verification notices a change
}

// Mix holds the weights of the formats of lines. Each app writes one of them.
type Mix [4]int

// The formats of lines, as places in a [Mix].
const (
	formatJSON = iota
	formatLogfmt
	formatAccess
	formatText
)

var formatNames = [...]string{"json", "logfmt", "access", "text"}

// DefaultMix is the mix of the comparisons with other servers in docs/benchmarks.md.
func DefaultMix() Mix { return Mix{50, 30, 20, 0} }

// MarshalText writes the weights in the form that UnmarshalText reads.
func (m Mix) MarshalText() ([]byte, error) {
	var b []byte
	for i, name := range formatNames {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(append(b, name...), '='), int64(m[i]), 10)
	}
	return b, nil
}

// UnmarshalText reads weights such as json=50,logfmt=30,access=20. Its error is of class [model.ErrInvalid].
func (m *Mix) UnmarshalText(text []byte) error {
	*m = Mix{}
	for part := range strings.SplitSeq(string(text), ",") {
		name, weight, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(weight)
		i := slices.Index(formatNames[:], name)
		if err != nil || i < 0 || n < 0 || n > 1000 {
			return fmt.Errorf("%w: mix %q: want weights such as json=50,logfmt=30,access=20,text=0", model.ErrInvalid, text)
		}
		m[i] = n
	}
	return m.check()
}

func (m *Mix) check() error {
	if m.sum() == 0 || min(m[0], m[1], m[2], m[3]) < 0 {
		return fmt.Errorf("%w: load: mix: at least one format must have a weight, and none a negative one", model.ErrInvalid)
	}
	return nil
}

func (m *Mix) sum() int { return m[0] + m[1] + m[2] + m[3] }

// The levels: each is a stream of every pod, with its share of the pod's lines in tenths of the mean.
var levels = [...]struct {
	name, upper string
	weight      int
}{{"info", "INFO", 28}, {"warn", "WARN", 6}, {"error", "ERROR", 4}, {"debug", "DEBUG", 2}}

// Bounds of one push.
const (
	maxLogStreams = 1 << 26
	maxPushLines  = 1 << 20
)

// Check returns an error of class [model.ErrInvalid] unless the shape can be sent.
func (l *Shape) Check() error {
	share := func(p float64) bool { return p >= 0 && p <= 1 }
	switch {
	case l.Lines < 1 || l.Lines > maxPushLines:
		return fmt.Errorf("%w: load: %d lines a push: want 1 to %d", model.ErrInvalid, l.Lines, maxPushLines)
	case !share(l.Metadata) || !share(l.Equal) || !share(l.Late.Share) || !share(l.Twice) || l.Late.By < 0 || l.Windows < 0:
		return fmt.Errorf("%w: load: shares of lines go from 0 to 1, times from 0", model.ErrInvalid)
	case l.Late.Share > 0 && l.Late.By < 8:
		return fmt.Errorf("%w: load: lines that are late must be so by a time", model.ErrInvalid)
	case len(l.Files) > 0:
		return l.checkFiles()
	case l.Streams < 1 || l.Streams > maxLogStreams || l.Pods < 1 || l.PerNode < 1 || l.PerNode > maxPushLines:
		return fmt.Errorf("%w: load: streams, pods and streams of a node must be at least 1, streams at most %d", model.ErrInvalid, maxLogStreams)
	}
	return l.Mix.check()
}

func (l *Shape) checkFiles() error {
	if l.Windows < 1 || l.Repeat < 1 || l.Metadata+l.Equal+l.Late.Share+l.Twice > 0 {
		return fmt.Errorf("%w: load: lines of files are sent as they are, in order, and to an end", model.ErrInvalid)
	}
	for _, f := range l.Files {
		if f.Lines < 1 {
			return fmt.Errorf("%w: load: %s has no lines", model.ErrInvalid, f.Path)
		}
	}
	return nil
}

// Total returns the number of streams.
func (l *Shape) Total() int64 {
	if len(l.Files) > 0 {
		return int64(len(l.Files))
	}
	return int64(l.Streams)
}

// Nodes returns how many pushes a window takes.
func (l *Shape) Nodes() int {
	if len(l.Files) > 0 {
		return len(l.Files)
	}
	return ceilDiv(l.Streams, l.PerNode)
}

// StreamsOf returns the streams [first, end) of a node.
func (l *Shape) StreamsOf(node int) (from, to int) {
	if len(l.Files) > 0 {
		return node, node + 1
	}
	return node * l.PerNode, min((node+1)*l.PerNode, l.Streams)
}

// linesOf returns how many lines a stream has in a window, repeats not counted.
func (l *Shape) linesOf(stream int) int {
	return max(1, (l.Lines*levels[stream%len(levels)].weight+l.PerNode*5)/(l.PerNode*10))
}

// PerWindow returns how many lines a window has, repeats not counted.
func (l *Shape) PerWindow() int64 {
	if len(l.Files) > 0 {
		return int64(l.Lines) * int64(len(l.Files))
	}
	var n int64
	for i := range len(levels) {
		n += int64((l.Streams-i+len(levels)-1)/len(levels)) * int64(l.linesOf(i))
	}
	return n
}

// pod numbers the pods; the pods of an app are on different nodes.
func (l *Shape) pod(stream int) (app, pod int) {
	n := stream / len(levels)
	apps := max(1, ceilDiv(ceilDiv(l.Streams, len(levels)), l.Pods))
	return n % apps, n / apps
}

// format draws the format of an app, so that even a few apps have the formats in about the right weights.
func (l *Shape) format(app int) int {
	// Steps of the golden ratio cover the formats evenly for any number of apps.
	_, part := math.Modf(float64(float64(app)*math.Phi) + 0.25)
	at := part * float64(l.Mix.sum())
	for i, w := range l.Mix {
		if at -= float64(w); at < 0 {
			return i
		}
	}
	return formatJSON
}

// cluster is the label that tells the lines of a load from other lines.
func (l *Shape) cluster() string { return "load-" + strconv.FormatUint(l.Seed, 10) }

// nodeName is the label that selects the streams of a node.
func (l *Shape) nodeName(node int) string {
	return fmt.Sprintf("node-%0*d", len(strconv.Itoa(l.Nodes()-1)), node)
}

// appName names an app: a word, and a number if there are more apps than words.
func (l *Shape) appName(app int) string {
	name := appNames[app%len(appNames)]
	if n := app / len(appNames); n > 0 {
		name += "-" + strconv.Itoa(n)
	}
	return name
}

// LabelsOf returns the labels of a stream, sorted by name.
func (l *Shape) LabelsOf(stream int) []Label {
	if len(l.Files) > 0 {
		return l.fileLabels(stream)
	}
	app, pod := l.pod(stream)
	env := "prod"
	if app%10 == 9 {
		env = "staging"
	}
	name := l.appName(app)
	return []Label{
		{"app", name}, {"cluster", l.cluster()}, {"env", env}, {"format", formatNames[l.format(app)]},
		{"level", levels[stream%len(levels)].name}, {"namespace", "ns-" + strconv.Itoa(app%8)}, {"node", l.nodeName(stream / l.PerNode)},
		{"pod", name + "-" + strconv.FormatUint(random.Draw(l.Seed^saltPod, uint64(app), 0)&0xffff|0x10000, 16)[1:] + "-" + strconv.Itoa(pod)},
	}
}

// Label is a label of a stream, or a pair of structured metadata.
type Label struct{ Name, Value string }

// Salts keep draws for different purposes independent.
const (
	saltPod    = 0x6c6f67706f64
	saltLine   = 0x6c6f676c696e
	saltNeedle = 0x6c6f676e6564
	saltOrder  = 0x6c6f676f7264
)

// Earliest returns how long before its window the time of a line may be, at most.
func (l *Shape) Earliest(t pace.Timeline) (ns int64) {
	if l.Late.Share > 0 {
		ns += int64(l.Late.By)
	}
	if l.Twice > 0 {
		ns += t.Step
	}
	return ns
}

// Selector selects the streams of a node.
func (l *Shape) Selector(node int) string {
	return fmt.Sprintf("{cluster=%q,node=%q}", l.cluster(), l.nodeName(node))
}

// LabelText writes labels as the push protocol does.
func LabelText(ls []Label) string {
	var sb strings.Builder
	for i, l := range ls {
		sb.WriteString(map[bool]string{true: "{", false: ", "}[i == 0])
		sb.WriteString(l.Name + "=" + strconv.Quote(l.Value))
	}
	return sb.String() + "}"
}

// Sized measures the first pushes and returns the bytes of lines of one window.
func (l *Shape) Sized() int64 {
	const enough = 8
	t := pace.Timeline{Start: 1_700_000_000e9, Step: int64(time.Minute)}
	w := l.NewWriter(t)
	var size sizeCounter
	n := min(l.Nodes(), enough)
	for node := range n {
		w.Push(0, node, &size)
	}
	return size.bytes * int64(l.Nodes()) / int64(n)
}

// sizeCounter counts lines.
type sizeCounter struct{ lines, bytes int64 }

func (*sizeCounter) Stream(int) {}

func (c *sizeCounter) Line(_ int64, text []byte, _ []Label) {
	c.lines++
	c.bytes += int64(len(text))
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
