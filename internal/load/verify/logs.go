package verify

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/load/lines"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/model"
)

// Lines is the result of reading lines back. Lines are compared byte for byte, with their times, structured
// metadata and labels. The order of lines with the same time and stream is compared too.
type Lines struct {
	Streams int64 `json:"streams"`
	Equal   int64 `json:"lines_equal"`
	Bytes   int64 `json:"bytes_equal"` // of lines
	Missing int64 `json:"acked_but_missing"`
	Doubled int64 `json:"doubled"`
	Wrong   int64 `json:"wrong"`     // another text, or other metadata
	Moved   int64 `json:"misplaced"` // in another order than they arrived in
	Extra   int64 `json:"extra"`     // never sent
	Unacked int64 `json:"unacked_present"`
	// Replaced counts lines that are not valid UTF-8, which JSON cannot represent: U+FFFD replaced the invalid
	// bytes, and all other bytes were equal.
	Replaced int64 `json:"equal_but_for_utf8,omitempty"`
	Failed   int64 `json:"failed_queries"`
	// Unproven is set if nothing was acknowledged.
	Unproven bool     `json:"nothing_acknowledged,omitempty"`
	Queries  int64    `json:"queries"`
	Examples []string `json:"examples,omitempty"`
	Seconds  float64  `json:"seconds"`
}

// OK reports whether the server has every acknowledged line once, unchanged and in its order, and no other
// line. It is false if nothing was acknowledged.
func (v *Lines) OK() bool {
	return !v.Unproven && v.Missing+v.Doubled+v.Wrong+v.Moved+v.Extra+v.Failed == 0
}

// LineVerifier reads a load of lines back over Loki's query_range, node by node and page by page.
type LineVerifier struct {
	Server *client.Server
	State  *statefile.State
	FS     vfs.FS // of the files
	// Nodes is how many nodes are drawn and compared; 0: all.
	Nodes int64
	Draw  uint64
	// Page is the number of lines of one query, which the server must allow.
	Page        int
	Concurrency int
	// Done, if set, is called for each page, with its number of lines.
	Done func(lines int)
}

// Run reads back and compares. It returns an error if it cannot begin or is cut short; differences are in the
// result.
func (v *LineVerifier) Run(ctx context.Context) (*Lines, error) {
	l := v.State.Logs
	switch {
	case l == nil:
		return nil, fmt.Errorf("%w: load: verify: the state file does not describe a load of lines", model.ErrInvalid)
	case v.Page < 2 || v.Concurrency < 1 || v.Nodes < 0:
		return nil, fmt.Errorf("%w: load: verify: a page must have at least 2 lines, and the concurrency must be at least 1", model.ErrInvalid)
	}
	files, err := l.Open(v.FS)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	c := &logChecker{LineVerifier: v, files: files}
	c.out.Unproven = !v.State.Promised(0)
	total := int64(l.Nodes())
	nodes := v.Nodes
	if nodes == 0 || nodes > total {
		nodes = total
	}
	draws := SampleVerifier{Draw: v.Draw}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(int64(v.Concurrency), nodes) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < nodes && ctx.Err() == nil; i = next.Add(1) - 1 {
				c.node(ctx, int(draws.pick(i, nodes, total)))
			}
		})
	}
	wg.Wait()
	c.out.Seconds = time.Since(began).Seconds()
	if err := ctx.Err(); err != nil {
		return &c.out, fmt.Errorf("%w: load: verify: %w", model.ErrClosed, err)
	}
	return &c.out, nil
}

// logChecker collects the findings. mu guards out.
type logChecker struct {
	*LineVerifier
	files []lines.FileLines
	mu    sync.Mutex
	out   Lines
}

func (c *logChecker) note(counter *int64, n int64, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*counter += n
	if len(c.out.Examples) < maxExamples {
		c.out.Examples = append(c.out.Examples, fmt.Sprintf(format, args...))
	}
}

// node compares all lines of a node.
func (c *logChecker) node(ctx context.Context, node int) {
	l := c.State.Logs
	want := newExpected(c.State, c.files, node)
	query := l.Selector(node)
	pages := &client.Pages{
		Server: c.Server, Expr: query, Forward: true, Metadata: true, From: want.begin(), To: want.end(), Size: c.Page, Most: c.Page,
	}
	for !pages.Done && ctx.Err() == nil {
		page, err := pages.Next(ctx)
		c.mu.Lock()
		c.out.Queries++
		c.mu.Unlock()
		if err != nil {
			c.note(&c.out.Failed, 1, "%s: %v", query, err)
			return
		}
		until := pages.From
		if pages.Done {
			until = want.end()
		}
		c.compare(query, want.until(until), linesOf(page))
		if c.Done != nil {
			c.Done(len(page))
		}
	}
	first, end := l.StreamsOf(node)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.Streams += int64(end - first)
}

// found counts the findings of one page, without a lock for each line.
type found struct{ equal, bytes, unacked, replaced int64 }

// compare compares the lines of an interval. Both sides are sorted by time.
func (c *logChecker) compare(query string, want []*wantLine, got []gotLine) {
	var f found
	for len(want) > 0 || len(got) > 0 {
		var at int64
		switch {
		case len(got) == 0, len(want) > 0 && want[0].at <= got[0].at:
			at = want[0].at
		default:
			at = got[0].at
		}
		w, g := 0, 0
		for w < len(want) && want[w].at == at {
			w++
		}
		for g < len(got) && got[g].at == at {
			g++
		}
		c.moment(query, want[:w], got[:g], &f)
		want, got = want[w:], got[g:]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.Equal += f.equal
	c.out.Bytes += f.bytes
	c.out.Unacked += f.unacked
	c.out.Replaced += f.replaced
}

// moment compares the lines of one time.
func (c *logChecker) moment(query string, want []*wantLine, got []gotLine, f *found) {
	// The latest position seen in each stream, if the moment has several lines. Lines with other metadata count
	// as another stream: Loki's protocol returns them separately, without an order between them.
	last := map[string]int{}
	for i := range got {
		g := &got[i]
		at, replaced := -1, false
		for j, w := range want {
			if same, how := w.compare(g); same && (at < 0 || want[at].seen) {
				at, replaced = j, how
			}
		}
		switch {
		case at < 0:
			c.stranger(query, want, g)
			continue
		case want[at].seen:
			c.note(&c.out.Doubled, 1, "%s: line at %d comes twice: %.200q", query, g.at, g.text)
			continue
		}
		w := want[at]
		w.seen = true
		group := ""
		if len(want) > 1 {
			group = g.stream + streamText(g.metadata)
		}
		switch {
		case w.certainty == never:
			c.note(&c.out.Extra, 1, "%s: line at %d, which was not sent: %.200q", query, g.at, g.text)
		case len(want) > 1 && last[group] > w.order:
			c.note(&c.out.Moved, 1, "%s: line at %d comes after one that arrived later: %.200q", query, g.at, g.text)
		case w.certainty == perhaps:
			f.unacked++
		default:
			f.equal++
			f.bytes += int64(len(w.text))
			if replaced {
				f.replaced++
			}
		}
		if len(want) > 1 {
			last[group] = max(last[group], w.order)
		}
	}
	for _, w := range want {
		if !w.seen && w.certainty == surely {
			c.note(&c.out.Missing, 1, "%s: acknowledged line at %d of %s is missing: %.200q", query, w.at, strings.ReplaceAll(w.stream, "\x00", " "), w.text)
		}
	}
}

// stranger notes a line that was not sent: a changed line, or one too many.
func (c *logChecker) stranger(query string, want []*wantLine, g *gotLine) {
	for _, w := range want {
		if !w.seen && w.stream == g.stream {
			w.seen = true
			c.note(&c.out.Wrong, 1, "%s: line at %d is %.200q %v, want %.200q %v", query, g.at, g.text, g.metadata, w.text, w.metadata)
			return
		}
	}
	c.note(&c.out.Extra, 1, "%s: line at %d of stream %s, which was not sent: %.200q", query, g.at, strings.ReplaceAll(g.stream, "\x00", " "), g.text)
}
