package graphite

import (
	"bytes"

	"github.com/shaledb/shale/internal/model"
)

// maxTags bounds the tags of one line, because each name is compared with all others.
const maxTags = 128

type tag struct{ name, value []byte }

// readTags reads ;tag=value pairs by the rules of graphite-web. It returns an error text, or "". If a
// tag occurs twice, the later value counts.
func (p *parser) readTags(b []byte) (why string) {
	p.tags = p.tags[:0]
	for len(b) > 0 {
		pair := b[1:] // after the semicolon
		if i := bytes.IndexByte(pair, ';'); i >= 0 {
			pair, b = pair[:i], pair[i:]
		} else {
			b = nil
		}
		name, value, ok := bytes.Cut(pair, []byte{'='})
		switch {
		case !ok || len(name) == 0:
			return "a tag is not of the form ;tag=value"
		case len(value) == 0:
			return "a tag has no value"
		case bytes.ContainsAny(name, "!^"):
			return "a tag has ! or ^ in its name"
		case value[0] == '~':
			return "a tag value begins with ~"
		case string(name) == model.NameLabel:
			return "a tag is named __name__"
		case string(name) == "name":
			continue // the metric's own name takes precedence
		}
		if !p.setTag(tag{name, value}) {
			return "more than 128 tags"
		}
	}
	return ""
}

func (p *parser) setTag(t tag) bool {
	for i := range p.tags {
		if bytes.Equal(p.tags[i].name, t.name) {
			p.tags[i].value = t.value
			return true
		}
	}
	if len(p.tags) == maxTags {
		return false
	}
	p.tags = append(p.tags, t)
	return true
}
