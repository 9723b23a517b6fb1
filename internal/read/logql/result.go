package logql

import (
	"bytes"
	"slices"
	"strings"
	"unsafe"

	"github.com/shaledb/shale/internal/model"
)

// Lines are the answer to a query for lines.
type Lines struct {
	// Streams are sorted by their labels, as text.
	Streams []Stream
	// Filtered counts the lines that passed all filters, of those that were looked at.
	Filtered int64
	Warnings []string
	Stats    Stats
}

// Stream is the lines that share labels.
type Stream struct {
	// Labels are those by which lines are gathered: all of the line, or, if categories are asked for, those of
	// the stream only. They have canonical form, but that a value may be empty where a stage made it so.
	Labels model.Labels
	// Entries are in the direction of the query; equal times in the order of arrival, or backward in its
	// reverse.
	Entries []Entry
}

// Entry is a line. All bytes stay valid as long as somebody holds them.
type Entry struct {
	Time     int64 // Unix nanoseconds
	Line     []byte
	Metadata model.Labels // structured metadata, as far as the stages left it
	Parsed   model.Labels // labels that stages made
}

// gather makes streams of entries, which are in order.
func gather(entries []found, tenants []string, categorize bool) []Stream {
	at := make(map[string]int)
	var out []Stream
	var key, labels []byte
	var pairs pairs
	for i := range entries {
		f := &entries[i]
		labels = append(labels[:0], f.stream()...)
		pairs.reset()
		switch {
		case len(tenants) > 1:
			pairs.add(f.stream())
			pairs.setTenant(tenants[f.tenant])
			if !categorize {
				pairs.add(f.metadata())
				pairs.add(f.parsed())
			}
			labels = pairs.append(labels[:0])
		case !categorize && len(f.metadata())+len(f.parsed()) > 0:
			pairs.add(f.stream())
			pairs.add(f.metadata())
			pairs.add(f.parsed())
			labels = pairs.append(labels[:0])
		}
		key = append(key[:0], labels...)
		n, known := at[string(key)]
		if !known {
			n = len(out)
			own := string(key)
			at[own] = n
			out = append(out, Stream{Labels: model.Labels(own)})
		}
		out[n].Entries = append(out[n].Entries, Entry{Time: f.time, Line: f.line(), Metadata: f.metadata(), Parsed: f.parsed()})
	}
	// The keys are the addresses of the first bytes of labels. At most one stream has no labels.
	text := make(map[*byte]string, len(out))
	for i := range out {
		text[unsafe.SliceData(out[i].Labels)] = out[i].Labels.String()
	}
	slices.SortFunc(out, func(a, b Stream) int {
		return strings.Compare(text[unsafe.SliceData(a.Labels)], text[unsafe.SliceData(b.Labels)])
	})
	return out
}

// pairs are the labels of several sets, whose names differ, on their way into one.
type pairs struct {
	names, values [][]byte
	order         []int
}

func (p *pairs) reset() { p.names, p.values = p.names[:0], p.values[:0] }

func (p *pairs) add(l model.Labels) {
	for n, v, rest, ok := l.Next(); ok; n, v, rest, ok = rest.Next() {
		p.names, p.values = append(p.names, n), append(p.values, v)
	}
}

// setTenant adds the tenant's label; one of that name that was there keeps its value under another.
func (p *pairs) setTenant(tenant string) {
	for i := range p.names {
		if string(p.names[i]) == TenantLabel {
			p.names[i] = []byte(originalPrefix + TenantLabel)
		}
	}
	p.names, p.values = append(p.names, []byte(TenantLabel)), append(p.values, []byte(tenant))
}

// append appends the set in canonical form.
func (p *pairs) append(dst []byte) []byte {
	p.order = p.order[:0]
	for i := range p.names {
		p.order = append(p.order, i)
	}
	slices.SortStableFunc(p.order, func(a, b int) int { return bytes.Compare(p.names[a], p.names[b]) })
	for n, i := range p.order {
		if n > 0 && bytes.Equal(p.names[i], p.names[p.order[n-1]]) {
			continue // what came first counts
		}
		dst = appendPair(dst, p.names[i], p.values[i])
	}
	return dst
}
