package patterns

import (
	"math/rand/v2"
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
	// reservedShare is the part of that which only a stream and level without a waiting line may take.
	reservedShare = 16
	// probes is how many waiting lines are looked at to find one that can stand for another.
	probes = 8
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
	before int32 // place of the row before of this stream and level, or -1
}

// accepts reports whether the row can stand for a line of a time, too. The time of a line decides whether it
// is mined, and that is the same for all times of a bucket.
func (r *row) accepts(time int64) bool { return bucketOf(r.time) == bucketOf(time) }

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

// has reports whether the row at a place is of a stream and level. The place may be one in rows of earlier
// times.
func (r *rows) has(place int32, s *stream, level uint8) bool {
	return int(place) < len(r.list) && r.list[place].stream == s && r.list[place].level == level
}

// turn returns a row of a stream and level that can stand for a line of a time, or nil. One row after the
// other has its turn, so that all stand for about as many lines, and the patterns keep their parts of the
// stream. The stream has rows of the level.
func (r *rows) turn(s *stream, level uint8, time int64) *row {
	for range probes {
		if !r.has(s.turn[level], s, level) {
			s.turn[level] = s.last[level]
		}
		found := &r.list[s.turn[level]]
		if s.turn[level] = found.before; found.before < 0 {
			s.turn[level] = s.last[level]
		}
		if found.accepts(time) {
			return found
		}
	}
	if last := &r.list[s.last[level]]; last.accepts(time) {
		return last
	}
	return nil
}

func (r *rows) reset() { r.list, r.bytes = r.list[:0], r.bytes[:0] }

// intake takes lines from pushes, without making them wait, and hands them to the miner.
//
// A row stands for stride lines. The less room there is, the more lines each row stands for: other lines join
// a waiting row of their own stream, level and 10 seconds. So joining changes no sum of a stream, level and
// 10 seconds, but only how it is divided among patterns. A line that has neither room nor such a row is
// dropped, with the lines that it stands for: dropped counts them, and no other line gets them. Sampling is
// right on average, and off by less than two strides for each series of a batch, or by nothing while the
// stride is 1. So the sum of a tenant is off by at most that for each series that it sends, and by what was
// dropped.
type intake struct {
	wake chan struct{} // has one while lines wait

	most int // bytes of lines that may wait

	mu      sync.Mutex
	streams map[streamID]*stream
	waiting *rows // next ones
	spare   *rows // being mined, or empty
	closed  bool

	// Of stride lines one is taken, at a random place, so that no stream can always be in that place or never.
	// skip is how many lines come before the next one, which stands for weight lines, and rest how many of these
	// come after it.
	stride, skip, rest int
	weight             float32
	random             rand.PCG
	second             int64 // that the following counts are of
	seen, taken        int

	builder model.LabelsBuilder
}

func (in *intake) open(memory int64) {
	in.most = int(min(max(memory/waitingShare, 16<<10), 1<<20))
	in.wake = make(chan struct{}, 1)
	in.streams = make(map[streamID]*stream)
	in.waiting, in.spare, in.stride = new(rows), new(rows), 1
	in.random.Seed(1, 1)
	in.choose(0)
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

// forgetTenant forgets and returns all streams of a tenant.
func (in *intake) forgetTenant(tenant string) (gone []*stream) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for id, s := range in.streams {
		if id.tenant == tenant {
			delete(in.streams, id)
			gone = append(gone, s)
		}
	}
	return gone
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
			switch in.take(b, i, from) {
			case joined:
				k.metrics.joined.Inc()
			case dropped:
				k.metrics.dropped.Add(float64(in.weight))
			}
			in.choose(in.rest + 1)
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

// choose chooses the line that is taken of the stride that begins after so many lines.
func (in *intake) choose(after int) {
	place := int(in.random.Uint64() % uint64(in.stride))
	in.skip, in.rest, in.weight = after+place, in.stride-1-place, float32(in.stride)
}

// adjust sets the stride for a batch of so many lines.
func (in *intake) adjust(second int64, lines int) {
	begins := second != in.second
	if begins {
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
	// If a burst raises the stride, the next line is still the one that was chosen, with its weight. Since it
	// depends on the lines taken whether the stride is raised, a new choice would favour some lines.
	if begins {
		in.choose(0)
	}
}

// fate is what becomes of a line.
type fate uint8

const (
	taken   fate = iota // it waits
	joined              // a waiting one stands for it
	dropped             // it is not counted
)

// take copies a row if there is room for it.
func (in *intake) take(b *model.Batch, series, i int) fate {
	w := in.waiting
	l, err := model.SplitLine(b.Text.Blob(i))
	if err != nil { // the write path has checked it
		return dropped
	}
	in.taken++
	text := l.Text[:min(len(l.Text), maxBytes+1)] // one more shows that the line goes on
	level := levelOf(l.Metadata)
	room := in.most - max((len(w.list)+1)*rowShare, len(w.bytes)+len(text))
	s := in.streams[streamID{b.Tenant, b.Keys[series]}]
	before := int32(-1)
	if s != nil && w.has(s.last[level], s, level) {
		before = s.last[level]
		r := &w.list[before]
		switch {
		case room < in.most/reservedShare:
			if r = w.turn(s, level, b.Text.Times[i]); r == nil {
				return dropped
			}
		case r.lines >= in.share(room) || !r.accepts(b.Text.Times[i]):
			r = nil
		}
		if r != nil {
			r.lines += in.weight
			return joined
		}
	}
	if room < 0 {
		return dropped
	}
	if s == nil {
		if s, err = in.newStream(b, series); err != nil {
			return dropped
		}
	}
	s.last[level] = int32(len(w.list))
	w.bytes = append(w.bytes, text...)
	w.list = append(w.list, row{s, b.Text.Times[i], in.weight, level, int32(len(w.bytes)), before})
	return taken
}

// share is how many lines a row stands for with so much room left: with each half of it gone, twice as many.
func (in *intake) share(room int) float32 {
	lines := float32(in.stride)
	for part := in.most / 2; room < part; part /= 2 {
		lines *= 2
	}
	return lines
}

// newStream makes a stream known. Its first row must follow, since it is the miner that forgets streams.
func (in *intake) newStream(b *model.Batch, series int) (*stream, error) {
	in.builder.Reset()
	b.BuildLabels(series, &in.builder)
	labels, err := in.builder.Append(nil)
	if err != nil {
		return nil, err
	}
	s := &stream{id: streamID{strings.Clone(b.Tenant), b.Keys[series]}, labels: slices.Clip(labels)}
	in.streams[s.id] = s
	return s, nil
}
