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
	maxLine int          // bytes, without the newline
	// complain is told of lines that are left out; line may be long and is not to be kept.
	complain func(line []byte, why string)

	// rest is what feed reads next.
	rest    []byte
	tags    []tag
	labels  model.LabelsBuilder
	scratch []byte
	counts  counts
}

// feed reads lines of rest into c.
func (p *parser) feed(c *chunk) (more bool) {
	p.rest = p.rest[p.add(p.rest, c):]
	return len(p.rest) > 0
}

// counts says what became of lines that are no rows.
type counts struct {
	lines, bad, nan, badTime int
}

const (
	second = 1_000_000_000
	// maxSeconds is the last whole second that int64 nanoseconds reach, and -maxSeconds the first.
	maxSeconds = math.MaxInt64 / second
)

// add reads the lines of b, of which the last one needs no newline, into c until it is full. It returns how many bytes
// were read.
func (p *parser) add(b []byte, c *chunk) (n int) {
	for n < len(b) && !c.full() {
		line := b[n:]
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line = line[:i]
			n++
		}
		n += len(line)
		p.counts.lines++
		if len(line) > p.maxLine {
			p.bad(line, "the line is too long")
			continue
		}
		if !p.plainLine(line, c) {
			p.line(line, c)
		}
	}
	return n
}

func (p *parser) bad(line []byte, why string) {
	p.counts.bad++
	p.complain(line, why)
}

// plainLine takes the lines that nearly all are: an ASCII name with or without tags, one space, a short decimal, one
// space, whole seconds. It does nothing and returns false for any other.
func (p *parser) plainLine(line []byte, c *chunk) bool {
	end := plainEnd(line)
	nameEnd := end
	for end < len(line) && line[end] == ';' {
		end += 1 + plainEnd(line[end+1:])
	}
	if nameEnd == 0 || end >= len(line) || line[end] != ' ' || line[0] == '~' {
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
	if name := line[:end]; end == nameEnd {
		c.addName(name, p.keys.NameKey(name), s*second, math.Float64bits(v))
	} else if why := p.series(name, s*second, math.Float64bits(v), c); why != "" {
		p.bad(line, why)
	}
	return true
}

// line takes any line.
func (p *parser) line(line []byte, c *chunk) {
	if !utf8.Valid(line) {
		p.bad(line, "the line is not UTF-8")
		return
	}
	path, rest := token(line)
	if len(path) == 0 {
		p.counts.lines-- // an empty line says nothing
		return
	}
	value, rest := token(rest)
	stamp, rest := token(rest)
	if more, _ := token(rest); len(stamp) == 0 || len(more) > 0 {
		p.bad(line, "the line has not three tokens")
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
		p.counts.nan++
		return
	}
	t, ok := p.time(seconds)
	if !ok {
		p.counts.badTime++
		p.complain(line, "the time is not between the years 1677 and 2262; it must be in seconds")
		return
	}
	if why := p.series(path, t, math.Float64bits(v), c); why != "" {
		p.bad(line, why)
	}
}

// time truncates to whole seconds, as carbon does; -1 is now.
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

// series adds a row under the name and tags of path. It returns what is wrong with them, or "".
func (p *parser) series(path []byte, t int64, v uint64, c *chunk) (why string) {
	name, tags := path, []byte(nil)
	if i := bytes.IndexByte(path, ';'); i >= 0 {
		name, tags = path[:i], path[i:]
	}
	for len(name) > 0 && name[0] == '~' {
		name = name[1:]
	}
	if len(name) == 0 {
		return "the name is empty"
	}
	if why := p.readTags(tags); why != "" {
		return why
	}
	if len(p.tags) == 0 {
		c.addName(name, p.keys.NameKey(name), t, v)
		return ""
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
