package graphite

import (
	"bytes"

	"github.com/shaledb/shale/internal/model"
)

// maxTags bounds the tags of one line, because each name is compared with all others. It is the most
// that limits.labels can be; the write path rejects series with more labels than that setting allows.
const maxTags = 1024

// storedWhole ends the texts about malformed tags, with which carbon stores a point, too.
const storedWhole = "; the point is stored, with the whole path as its name"

type tag struct{ name, value []byte }

// readPath splits a path into its name and p.tags. It returns a text if the tags are malformed, or "".
func (p *parser) readPath(path []byte) (name []byte, why string) {
	p.tags = p.tags[:0]
	name = path
	var openMetrics []byte
	if isOpenMetrics(path) {
		name, openMetrics, _ = bytes.Cut(path[:len(path)-1], []byte{'{'})
	}
	if i := bytes.IndexByte(name, ';'); i >= 0 {
		if why = p.readTags(name[i:]); why != "" {
			return nil, why
		}
		name = name[:i]
	}
	if why = p.readOpenMetrics(openMetrics); why != "" {
		return nil, why
	}
	if name = bytes.TrimLeft(name, "~"); len(name) == 0 {
		return nil, "the name is empty" + storedWhole
	}
	return name, ""
}

// readTags reads ;tag=value pairs by the rules of graphite-web. If a tag occurs twice, the later value
// counts.
func (p *parser) readTags(b []byte) (why string) {
	for len(b) > 0 {
		pair := b[1:] // after the semicolon
		if i := bytes.IndexByte(pair, ';'); i >= 0 {
			pair, b = pair[:i], pair[i:]
		} else {
			b = nil
		}
		name, value, ok := bytes.Cut(pair, []byte{'='})
		if !ok || len(name) == 0 {
			return "a tag is not of the form ;tag=value" + storedWhole
		}
		if why := p.setTag(tag{name, value}); why != "" {
			return why
		}
	}
	return ""
}

// setTag checks a tag and adds it to p.tags.
func (p *parser) setTag(t tag) (why string) {
	switch {
	case len(t.value) == 0:
		return "a tag has no value" + storedWhole
	case bytes.ContainsAny(t.name, ";!^="):
		return "a tag has one of ;!^= in its name" + storedWhole
	case bytes.IndexByte(t.value, ';') >= 0:
		return "a tag value has a semicolon" + storedWhole
	case t.value[0] == '~':
		return "a tag value begins with ~" + storedWhole
	case string(t.name) == model.NameLabel:
		return "a tag is named __name__" + storedWhole
	case string(t.name) == "name":
		return "" // the metric's own name takes precedence
	}
	for i := range p.tags {
		if bytes.Equal(p.tags[i].name, t.name) {
			p.tags[i].value = t.value
			return ""
		}
	}
	if len(p.tags) <= maxTags { // one more than is allowed shows that there are too many
		p.tags = append(p.tags, t)
	}
	return ""
}
