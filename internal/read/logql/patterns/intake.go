package patterns

import (
	"slices"
	"strings"
	"sync"

	"github.com/shaledb/shale/internal/model"
)

const (
	// linesPerSecond is about how many lines are mined. Of more, each n-th is taken, and counts n times.
	linesPerSecond = 5000
	// waitingShare is the part of the memory that the text of waiting lines may take, and as much again while it
	// is mined. A row is counted as rowShare bytes of text.
	waitingShare = 8
	rowShare     = 64
)

// streamID names a stream.
type streamID struct {
	tenant string
	key    model.Key
}

// row is a line that waits to be mined, and stands for a number of lines.
type row struct {
	stream *stream
	time   int64
	lines  float32
	level  uint8
	end    int32 // of the line in the bytes
}

// rows are lines that wait.
type rows struct {
	list  []row
	bytes []byte
}

func (r *rows) line(i int) []byte {
	begin := int32(0)
	if i > 0 {
		begin = r.list[i-1].end
	}
	return r.bytes[begin:r.list[i].end]
}

func (r *rows) reset() { r.list, r.bytes = r.list[:0], r.bytes[:0] }

// intake takes lines from pushes, without making them wait, and hands them to the miner.
type intake struct {
	wake chan struct{} // has one while lines wait

	most int // bytes of lines that may wait

	mu      sync.Mutex
	streams map[streamID]*stream
	waiting *rows // next ones
	spare   *rows // being mined, or empty
	closed  bool

	// Each stride-th line is taken; skip is how many come before the next one.
	stride, skip int
	second       int64 // that the following counts are of
	seen, taken  int
	carried      float32 // lines that found no room: the next one stands for them, too

	builder model.LabelsBuilder
}

func (in *intake) open(memory int64) {
	in.most = int(min(max(memory/waitingShare, 16<<10), 1<<20))
	in.wake = make(chan struct{}, 1)
	in.streams = make(map[streamID]*stream)
	in.waiting, in.spare, in.stride = new(rows), new(rows), 1
}

func (in *intake) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.closed {
		in.closed = true
		close(in.wake)
	}
}

// wait returns the lines that wait, once there are any, and false once the intake is closed. They are valid
// until the next call.
func (in *intake) wait() (*rows, bool) {
	if _, ok := <-in.wake; !ok {
		return nil, false
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.waiting, in.spare = in.spare, in.waiting
	in.waiting.reset()
	return in.spare, !in.closed
}

// forget forgets streams that are not mined any more.
func (in *intake) forget(gone []*stream) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, s := range gone {
		if in.streams[s.id] == s {
			delete(in.streams, s.id)
		}
	}
}

// See takes lines of a batch that has become durable. Pushes call it, so it neither waits nor mines.
func (k *Keeper) See(b *model.Batch) {
	if b.Signal != model.Logs || len(b.Text.Times) == 0 {
		return
	}
	in := &k.intake
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return
	}
	in.adjust(k.o.Now().Unix(), len(b.Text.Times))
	for i := range b.Keys {
		from, to := int(b.Text.Begin(i)), int(b.Text.End(i))
		for from+in.skip < to {
			from += in.skip
			in.skip = in.stride
			if !in.take(b, i, from) {
				in.carried += float32(in.stride)
				k.metrics.dropped.Inc()
			}
		}
		in.skip -= max(to-from, 0)
	}
	if len(in.waiting.list) > 0 {
		select {
		case in.wake <- struct{}{}:
		default:
		}
	}
}

// adjust sets the stride for a batch of so many lines.
func (in *intake) adjust(second int64, lines int) {
	if second != in.second {
		elapsed := max(second-in.second, 1)
		in.stride = max(1, int(int64(in.seen)/elapsed/linesPerSecond))
		in.second, in.seen, in.taken = second, 0, 0
	}
	in.seen += lines
	// A burst is heard less and less of, so that even its first second costs little.
	for in.taken >= linesPerSecond || lines/in.stride > linesPerSecond {
		in.stride *= 2
		in.taken = 0
	}
	in.skip = min(in.skip, in.stride-1)
}

// take copies a row, and reports whether there was room for it.
func (in *intake) take(b *model.Batch, series, i int) bool {
	w := in.waiting
	l, err := model.SplitLine(b.Text.Blob(i))
	if err != nil { // the write path has checked it
		return true
	}
	text := l.Text[:min(len(l.Text), maxBytes+1)] // one more shows that the line goes on
	if len(w.list) >= in.most/rowShare || len(w.bytes)+len(text) > in.most {
		return false
	}
	s, err := in.stream(b, series)
	if err != nil {
		return true
	}
	in.taken++
	w.bytes = append(w.bytes, text...)
	w.list = append(w.list, row{s, b.Text.Times[i], float32(in.stride) + in.carried, levelOf(l.Metadata), int32(len(w.bytes))})
	in.carried = 0
	return true
}

func (in *intake) stream(b *model.Batch, series int) (*stream, error) {
	id := streamID{b.Tenant, b.Keys[series]}
	if s, ok := in.streams[id]; ok {
		return s, nil
	}
	in.builder.Reset()
	b.BuildLabels(series, &in.builder)
	labels, err := in.builder.Append(nil)
	if err != nil {
		return nil, err
	}
	s := &stream{id: streamID{strings.Clone(b.Tenant), id.key}, labels: slices.Clip(labels)}
	in.streams[s.id] = s
	return s, nil
}
