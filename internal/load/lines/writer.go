package lines

import (
	"slices"
	"strconv"

	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/random"
)

// Sink receives the lines of a push, stream by stream. Text and metadata are valid until the next call.
type Sink interface {
	Stream(stream int)
	Line(at int64, text []byte, metadata []Label)
}

// Writer writes lines, and allocates only for metadata. It is for one goroutine.
type Writer struct {
	*Shape
	timeline pace.Timeline
	random   uint64 // the state of what is drawn for a line
	format   int    // of the stream
	clock    clock
	buf      []byte
	pair     [2]Label
	needles  []needle
	Files    []FileLines
}

// NewWriter returns a writer of lines whose windows have the times of the timeline.
func (l *Shape) NewWriter(t pace.Timeline) *Writer {
	return &Writer{Shape: l, timeline: t, buf: make([]byte, 0, 1<<10), needles: l.needles()}
}

// Push writes the lines of a node in a window.
func (w *Writer) Push(window, node int, sink Sink) {
	if len(w.Files) > 0 {
		w.pushFile(window, node, sink)
		return
	}
	needles, n := w.needlesOf(window, node), 0
	from, to := w.StreamsOf(node)
	for stream := from; stream < to; stream++ {
		sink.Stream(stream)
		app, _ := w.pod(stream)
		w.format = w.Shape.format(app)
		c := w.linesOf(stream)
		for j := range c {
			w.emit(sink, stream, window, j, c, needles.textFor(n))
			n++
		}
		if w.Twice == 0 {
			continue
		}
		w.repeat(sink, stream, window, c, needles, n-c, 0)
		if window > 0 {
			earlier := w.needlesOf(window-1, node)
			w.repeat(sink, stream, window-1, c, earlier, n-c, 1)
		}
	}
}

// repeat writes the repeats of a window's lines that are due now: 0 in the window itself, 1 in the next one.
func (w *Writer) repeat(sink Sink, stream, window, c int, needles needlesOf, first, now int) {
	for j := range c {
		if drawn := random.Spread64(w.order(stream, window, j) + random.SaltTwice); random.Happens(w.Twice, drawn) && int(drawn&1) == now {
			w.emit(sink, stream, window, j, c, needles.textFor(first+j))
		}
	}
}

// order draws whether a line is late, has the time of the line before, or is sent twice.
func (w *Writer) order(stream, window, j int) uint64 {
	return random.Draw(w.Seed^saltOrder, uint64(stream), uint64(window)<<20|uint64(j))
}

// emit writes the j-th of c lines of a stream in a window.
func (w *Writer) emit(sink Sink, stream, window, j, c int, needle string) {
	drawn := w.order(stream, window, j)
	at := w.timeOf(stream, window, j, c, drawn)
	w.random = random.Draw(w.Seed^saltLine, uint64(stream), uint64(window)<<20|uint64(j))
	w.clock.set(at)
	w.buf = w.text(w.buf[:0], w.format, stream%len(levels), needle)
	var metadata []Label
	if w.Metadata > 0 && random.Happens(w.Metadata, random.Spread64(drawn+saltPod)) {
		w.pair[0] = Label{"shard", strconv.Itoa(int(w.next() % 64))}
		w.pair[1] = Label{"trace_id", string(appendHex(appendHex(nil, w.next()), w.next()))}
		metadata = w.pair[:]
	}
	sink.Line(at, w.buf, metadata)
}

// timeOf returns the time of a line: its position in the window, up to one position later.
func (w *Writer) timeOf(stream, window, j, c int, drawn uint64) int64 {
	if w.Equal > 0 {
		k := j
		for ; k > 0 && random.Happens(w.Equal, random.Spread64(drawn+saltNeedle)); k-- {
			drawn = w.order(stream, window, k-1)
		}
		if k < j {
			return w.own(window, k, c, drawn)
		}
	}
	at := w.own(window, j, c, drawn)
	if w.Late.Share > 0 {
		if late := random.Spread64(drawn + random.SaltLate); random.Happens(w.Late.Share, late) {
			at -= int64(w.Late.By) >> (late & 3)
		}
	}
	return at
}

func (w *Writer) own(window, j, c int, drawn uint64) int64 {
	place := w.timeline.Step / int64(c)
	return w.timeline.At(window) + int64(j)*place + int64(drawn>>40)*(place>>12)>>12
}

// next draws 64 bits.
func (w *Writer) next() uint64 {
	w.random += 0x9e3779b97f4a7c15
	return random.Spread64(w.random)
}

// text appends a line.
func (w *Writer) text(b []byte, format, level int, needle string) []byte {
	r := w.next()
	trouble := level == 1 || level == 2 || r&31 == 0
	message, status := calmMessages[r>>8&15], statuses[r>>12&15]
	if trouble {
		message, status = troubleMessages[r>>8&15], troubleStatus[r>>12&15]
	}
	switch format {
	case formatLogfmt:
		return w.logfmt(b, r, levels[level].name, message, status, needle)
	case formatAccess:
		return w.access(b, r, status, needle)
	case formatText:
		return w.prose(b, r, levels[level].upper, message, needle)
	}
	return w.json(b, r, levels[level].name, message, status, needle)
}

func (w *Writer) json(b []byte, r uint64, level string, message, status, needle string) []byte {
	b = append(b, `{"ts":"`...)
	b = w.clock.appendISO(b)
	b = append(append(append(b, `Z","level":"`...), level...), `","component":"`...)
	b = append(append(b, components[r>>16&7]...), `","msg":"`...)
	b = append(b, message...)
	b = append(b, needle...)
	if r>>32&15 > 0 {
		b = append(b, `","trace_id":"`...)
		b = appendHex(appendHex(b, w.next()), w.next())
		b = append(b, `","span_id":"`...)
		b = appendHex(b, w.next())
	}
	b = append(append(append(b, `","method":"`...), methods[r>>20&7]...), `","path":"`...)
	b = append(b, paths[r>>24&7]...)
	numbers := w.next()
	b = strconv.AppendUint(b, numbers&0x3ffff, 10)
	b = append(append(b, `","status":`...), status...)
	b = append(b, `,"user_id":`...)
	b = strconv.AppendUint(b, 100_000+numbers>>18&0xffff, 10)
	b = append(b, `,"duration_ms":`...)
	b = appendMillis(b, numbers>>34)
	return append(b, '}')
}

func (w *Writer) logfmt(b []byte, r uint64, level string, message, status, needle string) []byte {
	b = append(b, "ts="...)
	b = w.clock.appendISO(b)
	b = append(append(append(b, "Z level="...), level...), " caller="...)
	b = append(append(b, callers[r>>16&7]...), ` msg="`...)
	b = append(b, message...)
	b = append(append(b, needle...), '"')
	if r>>32&15 > 0 {
		b = append(b, " traceID="...)
		b = appendHex(appendHex(b, w.next()), w.next())
	}
	numbers := w.next()
	b = append(append(b, " status="...), status...)
	b = append(b, " attempt="...)
	b = append(b, '1'+byte(r>>24&3))
	b = append(b, " bytes="...)
	b = strconv.AppendUint(b, numbers&0xfffff, 10)
	b = append(b, " duration="...)
	b = appendMillis(b, numbers>>34)
	return append(b, "ms"...)
}

func (w *Writer) access(b []byte, r uint64, status, needle string) []byte {
	numbers := w.next()
	b = append(b, "10."...)
	b = append(strconv.AppendUint(b, numbers&15, 10), '.')
	b = append(strconv.AppendUint(b, numbers>>4&0xff, 10), '.')
	b = strconv.AppendUint(b, numbers>>12&0xff, 10)
	b = append(b, " - - ["...)
	b = w.clock.appendCommon(b)
	b = append(append(b, ` +0000] "`...), methods[r>>20&7]...)
	b = append(append(b, ' '), paths[r>>24&7]...)
	b = strconv.AppendUint(b, numbers>>20&0x3ffff, 10)
	b = append(append(b, ` HTTP/1.1" `...), status...)
	b = append(b, ' ')
	b = strconv.AppendUint(b, numbers>>40&0xffff, 10)
	b = append(append(b, ` "-" "`...), agents[r>>28&7]...)
	b = append(append(b, '"'), needle...)
	if r>>32&1 > 0 {
		b = append(b, " rid="...)
		b = appendHex(appendHex(b, w.next()), w.next())
	}
	return b
}

func (w *Writer) prose(b []byte, r uint64, level, message, needle string) []byte {
	numbers := w.next()
	b = w.clock.appendISO(b)
	b[len(b)-4], b[len(b)-13] = ',', ' '
	b = append(append(b, ' '), level...)
	b = append(b, " [worker-"...)
	b = strconv.AppendUint(b, r>>20&63, 10)
	b = append(append(b, "] "...), classes[r>>16&7]...)
	b = append(append(b, " - "...), message...)
	b = append(b, needle...)
	b = append(b, " (order "...)
	b = strconv.AppendUint(b, numbers&0xffffff, 10)
	if r>>32&3 > 0 {
		b = append(b, ", trace "...)
		b = appendHex(appendHex(b, w.next()), w.next())
	}
	b = append(b, ", took "...)
	b = appendMillis(b, numbers>>34)
	return append(b, " ms)"...)
}

// needle is a text that few lines contain.
type needle struct {
	push  int64
	line  int // of the push
	text  string
	group int
}

// needlesOf are the needles of one push, by line.
type needlesOf []needle

// textFor returns the text to add to a line of the push.
func (n *needlesOf) textFor(line int) string {
	for _, one := range *n {
		if one.line == line {
			return one.text
		}
	}
	return ""
}

func (w *Writer) needlesOf(window, node int) needlesOf {
	push := int64(window)*int64(w.Nodes()) + int64(node)
	from, _ := slices.BinarySearchFunc(w.needles, push, func(n needle, push int64) int { return int(min(1, max(-1, n.push-push))) })
	to := from
	for to < len(w.needles) && w.needles[to].push == push {
		to++
	}
	return w.needles[from:to]
}
