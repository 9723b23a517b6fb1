package victorialogs

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/rfc3339"
	"github.com/shaledb/shale/internal/write/logs"
)

const (
	// rowBytes is about what a line takes besides its text, while it is sorted and after.
	rowBytes = 80
	// chargeStep is how many bytes are taken from the quota at a time.
	chargeStep = 16 << 10
	// maxKeptBytes bounds the buffers that a fetch leaves to the next one.
	maxKeptBytes = 4 << 20
)

// fetch gathers the rows of a response, and then makes lines of them. Rows are gathered in buffers that all
// fetches share. Lines are copied into memory of their own once they are sorted and their sizes are known.
type fetch struct {
	p    *page
	want columns

	raw     []rawLine
	text    []byte
	sets    []metadataSet
	meta    []byte // of the sets
	known   map[uint64]uint32
	streams map[string]*fetched // by spelling
	all     []*fetched
	last    *fetched // neighbours mostly are of one stream
	used    int64    // of what was charged
	// keepsCopies says that lines that are there twice are not dropped.
	keepsCopies bool

	entries logs.Entries
	batch   model.Batch
}

// rawLine is a row. Its text ends where that of the next row begins. It has no pointers, so that collecting
// garbage costs nothing for the buffers.
type rawLine struct {
	time int64
	text int
	of   int32  // its spelling
	set  uint32 // its metadata; 0: none
}

// metadataSet is metadata of lines of a stream.
type metadataSet struct {
	begin, end int
	of         int32  // the spelling of its first line
	index      uint32 // among those of the stream, from 1 on
	next       uint32 // a set with the same hash; 0: none
}

// fetched is what a response has of one spelling of a stream.
type fetched struct {
	index    int32 // among all
	spelling []byte
	fields   []field // of the stream
	*stream          // nil: it is not part of the result
	group    *gathered
}

// gathered is what a response has of a stream, which may have several spellings.
type gathered struct {
	*stream
	rows, bytes, sets int
	order             []int32
}

var fetches = sync.Pool{New: func() any {
	return &fetch{known: map[uint64]uint32{}, streams: map[string]*fetched{}}
}}

func newFetch(p *page, want columns) *fetch {
	f := fetches.Get().(*fetch)
	f.p, f.want = p, want
	f.entries.Start(&p.source.streams.rules, &f.batch, 0, func(int64) error { return nil })
	return f
}

// release gives the buffers to the next fetch.
func (f *fetch) release() {
	clear(f.all)
	clear(f.known)
	clear(f.streams)
	f.entries.Forget()
	f.raw, f.text, f.sets, f.meta, f.all = f.raw[:0], f.text[:0], f.sets[:0], f.meta[:0], f.all[:0]
	f.p, f.last, f.used, f.keepsCopies, f.batch = nil, nil, 0, false, model.Batch{}
	if cap(f.text)+cap(f.meta)+cap(f.raw)*24+cap(f.sets)*32 <= maxKeptBytes {
		fetches.Put(f)
	}
}

// add takes a row.
func (f *fetch) add(row []field) error {
	var at, spelling, text []byte
	for i := range row {
		switch string(row[i].name) {
		case "_time":
			at = row[i].value
		case "_stream":
			spelling = row[i].value
		case "_msg":
			text = row[i].value
		}
	}
	t, ok := rfc3339.Parse(at)
	if !ok {
		return fmt.Errorf("%w: VictoriaLogs at %s has sent a line without a time: %s", model.ErrCorrupt, f.p.source.client.url, rowText(row))
	}
	s, err := f.streamOf(spelling)
	if err != nil || s.stream == nil {
		return err
	}
	if s.group.bytes += len(text); s.group.bytes > math.MaxInt32 || len(f.raw) == math.MaxInt32 {
		return fmt.Errorf("%w: the lines of %s from %s to %s exceed %d bytes; ask for a shorter range", model.ErrLimit, s.Labels, timeText(f.p.Min), timeText(f.p.Max), math.MaxInt32)
	}
	if err := f.take(2*int64(len(text)) + rowBytes); err != nil {
		return err
	}
	s.group.rows++
	l := rawLine{time: t, of: s.index, text: len(f.text)}
	if f.want != times {
		f.text = append(f.text, text...)
		if l.set, err = f.metadata(s, row, text); err != nil {
			return err
		}
	}
	f.raw = append(f.raw, l)
	return nil
}

// take charges the query for some bytes, in steps.
func (f *fetch) take(n int64) error {
	if f.used += n; f.used <= f.p.charge {
		return nil
	}
	step := max(f.used-f.p.charge, chargeStep)
	if err := f.p.req.Quota.TakeBytes(step); err != nil {
		return err
	}
	f.p.charge += step
	return nil
}

// streamOf returns what is known of a spelling. Streams that are new since the directory was read are not
// part of the result.
func (f *fetch) streamOf(spelling []byte) (*fetched, error) {
	if f.last != nil && bytes.Equal(f.last.spelling, spelling) {
		return f.last, nil
	}
	s := f.streams[string(spelling)]
	if s == nil {
		s = &fetched{index: int32(len(f.all)), spelling: bytes.Clone(spelling)}
		if s.stream = f.p.streams.lookUp(string(spelling)); s.stream != nil {
			s.group = f.groupOf(s.stream)
		}
		var err error
		if s.fields, err = fieldsOf(s.spelling); err != nil {
			return nil, err
		}
		f.streams[string(s.spelling)], f.all = s, append(f.all, s)
	}
	if f.last = s; s.stream != nil {
		f.entries.Begin(s.stream.Stream)
	}
	return s, nil
}

// groupOf returns what is gathered of a stream.
func (f *fetch) groupOf(st *stream) *gathered {
	if len(st.spellings) > 1 {
		for _, spelling := range st.spellings {
			if s := f.streams[spelling]; s != nil && s.group != nil {
				return s.group
			}
		}
	}
	return &gathered{stream: st}
}

// metadata makes structured metadata of the fields that are neither the line nor labels of its stream.
func (f *fetch) metadata(s *fetched, row []field, text []byte) (set uint32, err error) {
	m := &f.entries.Meta
	m.Reset()
	for i := range row {
		switch name := row[i].name; {
		case len(name) > 0 && name[0] == '_' && isSpecial(name), isOwn(s.fields, &row[i]):
		default:
			m.Add(name, row[i].value)
		}
	}
	if why := m.Lost(); why != "" {
		return 0, fmt.Errorf("%w: a line of %s has fields that cannot be shown: %s", model.ErrLimit, s.Labels, why)
	}
	begin := len(f.meta)
	f.meta = f.entries.AppendMetadata(f.meta, text)
	labels := f.meta[begin:]
	if len(labels) == 0 {
		return 0, nil
	}
	hash := maphash.Bytes(hashSeed, labels)
	first := f.known[hash]
	for set = first; set != 0; set = f.sets[set-1].next {
		if x := &f.sets[set-1]; f.all[x.of].group == s.group && bytes.Equal(f.meta[x.begin:x.end], labels) {
			f.meta = f.meta[:begin]
			return set, nil
		}
	}
	if err := f.take(2*int64(len(labels)) + rowBytes); err != nil {
		return 0, err
	}
	s.group.sets++
	f.sets = append(f.sets, metadataSet{of: s.index, begin: begin, end: len(f.meta), index: uint32(s.group.sets), next: first})
	f.known[hash] = uint32(len(f.sets))
	return uint32(len(f.sets)), nil
}

var hashSeed = maphash.MakeSeed()

func isSpecial(name []byte) bool {
	switch string(name) {
	case "_time", "_msg", "_stream", "_stream_id":
		return true
	}
	return false
}

// isOwn reports whether a field of a line is one of its stream. A field of that name with another value was
// structured metadata.
func isOwn(stream []field, x *field) bool {
	for i := range stream {
		if o := &stream[i]; bytes.Equal(o.name, x.name) && bytes.Equal(o.value, x.value) {
			return true
		}
	}
	return false
}

func (f *fetch) textOf(i int32) []byte {
	if int(i)+1 == len(f.raw) {
		return f.text[f.raw[i].text:]
	}
	return f.text[f.raw[i].text:f.raw[i+1].text]
}

func (f *fetch) metadataOf(i int32) []byte {
	if f.raw[i].set == 0 {
		return nil
	}
	x := &f.sets[f.raw[i].set-1]
	return f.meta[x.begin:x.end]
}

// compare orders lines of a stream by time, those of one time by their text and their metadata. VictoriaLogs
// does not keep the order in which lines of one time arrived.
func (f *fetch) compare(a, b int32) int {
	if c := cmp.Compare(f.raw[a].time, f.raw[b].time); c != 0 || f.want != whole {
		return c
	}
	return cmp.Or(bytes.Compare(f.textOf(a), f.textOf(b)), bytes.Compare(f.metadataOf(a), f.metadataOf(b)))
}

// settle sorts the lines of each stream, and drops those that are there twice.
func (f *fetch) settle() map[*stream]*lines {
	groups := f.groups()
	of := make(map[*stream]*lines, len(groups)+len(f.p.cells))
	all := make([]lines, len(groups))
	// One piece of memory for each column of all streams.
	times, metadata := make([]int64, 0, len(f.raw)), make([]model.Labels, 0, len(f.sets))
	var text []byte
	var ends, sets []uint32
	if f.want == whole {
		text, ends = make([]byte, 0, len(f.text)), make([]uint32, 0, len(f.raw))
	}
	if len(f.sets) > 0 {
		sets = make([]uint32, 0, len(f.raw))
	}
	meta := bytes.Clone(f.meta)
	labels := make([]model.Labels, len(f.sets))
	for i, x := range f.sets {
		labels[i] = model.Labels(meta[x.begin:x.end:x.end])
	}
	for n, g := range groups {
		l := &all[n]
		of[g.stream] = l
		fromRow, fromText, fromMeta := len(times), len(text), len(metadata)
		metadata = metadata[:fromMeta+g.sets]
		for k, i := range g.order {
			if k > 0 && f.want == whole && !f.keepsCopies && f.compare(g.order[k-1], i) == 0 {
				l.dropped = append(l.dropped, f.raw[i].time)
				continue
			}
			times = append(times, f.raw[i].time)
			if f.want == whole {
				text = append(text, f.textOf(i)...)
				ends = append(ends, uint32(len(text)-fromText))
			}
			if g.sets > 0 {
				set := uint32(0)
				if x := f.raw[i].set; x != 0 {
					set = f.sets[x-1].index
					metadata[fromMeta+int(set)-1] = labels[x-1]
				}
				sets = append(sets, set)
			}
		}
		l.times = times[fromRow:len(times):len(times)]
		if f.want == whole {
			l.bytes, l.ends = text[fromText:len(text):len(text)], ends[len(ends)-len(l.times):len(ends):len(ends)]
		}
		if g.sets > 0 {
			l.metadata, l.of = metadata[fromMeta:len(metadata):len(metadata)], sets[len(sets)-len(l.times):len(sets):len(sets)]
		}
	}
	return of
}

// groups returns the streams with the order of their rows.
func (f *fetch) groups() (all []*gathered) {
	order := make([]int32, len(f.raw))
	for i := range f.raw {
		g := f.all[f.raw[i].of].group
		if g.order == nil {
			g.order, order = order[:0:g.rows], order[g.rows:]
			all = append(all, g)
		}
		g.order = append(g.order, int32(i))
	}
	for _, g := range all {
		if !slices.IsSortedFunc(g.order, f.compare) {
			slices.SortFunc(g.order, f.compare)
		}
	}
	return all
}
