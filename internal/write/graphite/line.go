package graphite

import (
	"bytes"
	"math"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

// parser turns lines into rows of a chunk. It belongs to one goroutine.
type parser struct {
	keys    model.KeyBuilder
	now     func() int64 // Unix nanoseconds
	tenant  string
	maxLine int // bytes, without the newline
	// reportBad logs a line that is dropped. It must not keep line.
	reportBad func(line []byte, why string)
	rules     Rules // nil: none
	// ruled counts points that rules discard, by reason.
	ruled map[string]int
	// datagram means that lines end where Python's str.splitlines ends them, as in carbon's datagrams.
	datagram bool

	// rest is what feed reads next.
	rest []byte
	tags []tag
	// unescaped has the values of tags that were written with escapes.
	unescaped []byte
	labels    model.LabelsBuilder
	scratch   []byte
	counts    counts
	firstNaN  []byte // the first of counts.nan
}

// feed reads lines of rest into c.
func (p *parser) feed(c *chunk) (more bool) {
	p.rest = p.rest[p.add(p.rest, c):]
	return len(p.rest) > 0
}

// counts counts the lines that were read and those that became no row, by reason.
type counts struct {
	lines, bad, nan, badTime int
}

const (
	second = 1_000_000_000
	// maxSeconds is the last whole second that int64 nanoseconds can hold, and -maxSeconds the first.
	maxSeconds = math.MaxInt64 / second
)

// The texts about bad input that occur more than once.
const (
	tooLongLine = "the line is too long"
	tooManyTags = "more than 1024 tags (the most that limits.labels can allow)"
	badTime     = "the time is not between the years 1677 and 2262; it must be in seconds"
)

// add parses the lines of b into c until c is full, and returns how many bytes it read. The last line
// needs no newline.
func (p *parser) add(b []byte, c *chunk) (n int) {
	for n < len(b) && !c.full() {
		line := b[n:]
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line = line[:i]
			n++
		}
		n += len(line)
		p.counts.lines++
		switch {
		case len(line) <= p.maxLine && p.plainLine(line, c):
		case p.datagram:
			p.datagramLines(line, c)
		default:
			p.line(line, c)
		}
	}
	return n
}

func (p *parser) bad(line []byte, why string) {
	p.counts.bad++
	p.reportBad(line, why)
}

// nan counts a point without a value and keeps the first one for the log.
func (p *parser) nan(line []byte) {
	if p.counts.nan++; p.counts.nan == 1 {
		p.firstNaN = append(p.firstNaN[:0], line[:min(len(line), maxLogged)]...)
	}
}

// plainLine parses the common form of a line: an ASCII name with or without tags, one space, a short
// decimal, one space, whole seconds. It returns false for any other line and leaves c unchanged. A name
// that ends with a brace may have the tags of OpenMetrics.
func (p *parser) plainLine(line []byte, c *chunk) bool {
	end := plainEnd(line)
	nameEnd := end
	for end < len(line) && line[end] == ';' {
		end += 1 + plainEnd(line[end+1:])
	}
	if nameEnd == 0 || end >= len(line) || line[end] != ' ' || line[0] == '~' || line[end-1] == '}' {
		return false
	}
	v, n, ok := plainNumber(line[end+1:])
	if !ok {
		return false
	}
	rest := line[end+1+n:]
	if len(rest) == 0 || rest[0] != ' ' {
		return false
	}
	s, n, ok := plainSeconds(rest[1:])
	if !ok || s > maxSeconds || n+1 != len(rest) && string(rest[n+1:]) != "\r" {
		return false
	}
	if name := line[:end]; end == nameEnd && p.rules == nil {
		c.addName(name, p.keys.NameKey(name), s*second, math.Float64bits(v))
	} else if why := p.point(name, s*second, math.Float64bits(v), c); why != "" {
		p.bad(line, why)
	}
	return true
}

// line parses any line.
func (p *parser) line(line []byte, c *chunk) {
	if len(line) > p.maxLine {
		p.bad(line, tooLongLine)
		return
	}
	if !utf8.Valid(line) {
		p.bad(line, "the line is not valid UTF-8")
		return
	}
	path, rest := token(line)
	if len(path) == 0 {
		p.counts.lines-- // empty lines are not counted
		return
	}
	value, rest := token(rest)
	stamp, rest := token(rest)
	if more, _ := token(rest); len(stamp) == 0 || len(more) > 0 {
		p.bad(line, "expected 3 fields: name, value and time")
		return
	}
	v, ok := number(value, &p.scratch)
	if !ok {
		p.bad(line, "the value is not a number")
		return
	}
	seconds, ok := number(stamp, &p.scratch)
	if !ok || seconds != seconds || math.IsInf(seconds, 0) {
		p.bad(line, "the time is not a number")
		return
	}
	if v != v {
		p.nan(line)
		return
	}
	t, ok := p.time(seconds)
	if !ok {
		p.counts.badTime++
		p.reportBad(line, badTime)
		return
	}
	if why := p.point(path, t, math.Float64bits(v), c); why != "" {
		p.bad(line, why)
	}
}

// point adds the row of a point with a path in UTF-8, unless a rule discards it. It returns an error text if
// the row cannot be stored, or "".
func (p *parser) point(path []byte, t int64, bits uint64, c *chunk) (why string) {
	if p.rules != nil {
		stored, dropped := p.rules.Pass(p.tenant, path, t, math.Float64frombits(bits))
		if dropped != "" {
			p.ruled[dropped]++
			return ""
		}
		if path = stored; len(path) > p.maxLine {
			return "the path is too long after rewriting"
		}
	}
	if isPlainName(path) {
		c.addName(path, p.keys.NameKey(path), t, bits)
		return ""
	}
	return p.series(path, t, bits, c)
}

// isPlainName reports whether a path is surely a name without tags.
func isPlainName(path []byte) bool {
	return len(path) > 0 && plainEnd(path) == len(path) && path[0] != '~' && path[len(path)-1] != '}'
}

// time truncates to whole seconds, as carbon does. The time -1 means now.
func (p *parser) time(seconds float64) (t int64, ok bool) {
	seconds = math.Trunc(seconds)
	switch {
	case seconds == -1:
		return p.now() / second * second, true
	case seconds > maxSeconds || seconds < -maxSeconds:
		return 0, false
	}
	return int64(seconds) * second, true
}

// series adds a row under the name and tags of path. If the tags are malformed, the whole path is the
// name, as with carbon, and the log says so. It returns an error text if the row cannot be stored, or "".
func (p *parser) series(path []byte, t int64, v uint64, c *chunk) (why string) {
	if len(path) == 0 {
		return "the name is empty"
	}
	name, malformed := p.readPath(path)
	if malformed != "" {
		p.reportBad(path, malformed)
		name, p.tags = path, p.tags[:0]
	}
	switch len(p.tags) {
	case 0:
		c.addName(name, p.keys.NameKey(name), t, v)
		return ""
	case maxTags + 1:
		return tooManyTags
	}
	p.labels.Reset()
	p.labels.Add(nameLabel, name)
	for _, t := range p.tags {
		p.labels.Add(t.name, t.value)
	}
	var err error
	if p.scratch, err = p.labels.Append(p.scratch[:0]); err != nil {
		return err.Error()
	}
	l := model.Labels(p.scratch)
	c.addLabels(l, l.Key(p.keys.Seed, model.Metrics), t, v)
	return ""
}
