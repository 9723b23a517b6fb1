package logql

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/selection"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// TailQuery is a query for lines that are still to come, and for those since Start.
type TailQuery struct {
	Tenant     string
	Prepared   *Prepared
	Start      int64 // Unix nanoseconds
	Limit      int   // of lines since Start: the newest ones; 0: none of them
	Delay      int64 // nanoseconds that a line waits for others that are older
	Categorize bool
	Quota      *model.Quota
	Cost       *model.Cost
	// Past, if set, bounds the reading of the lines since Start, which is a query as any other: it returns
	// once that may begin, with the context to read by. done is called when they are read, before they are
	// handed out.
	Past func(ctx context.Context) (past context.Context, done func(), err error)
}

// Batch is lines that came: of each stream, and across streams, older ones first. It is valid during the
// call.
type Batch struct {
	Streams []Stream
	// Dropped are lines of the followed streams that were left out because the client was too slow, whether
	// they would have passed the query's stages or not; some of them, if they are many.
	Dropped []Dropped
}

// Dropped is a line that was not handed out.
type Dropped struct {
	Time   int64
	Labels model.Labels // of its stream
}

const (
	// tailBatch is how many lines are handed out at a time, as Loki does.
	tailBatch = 100
	// pendingBytes bounds the lines that wait for their delay.
	pendingBytes = 4 << 20
)

// Tail hands out lines as they come, until the context ends or emit returns an error, which it returns. It
// begins with the newest lines since Start; between them and those that come no line is lost or there twice.
func (e *Engine) Tail(ctx context.Context, q *TailQuery, emit func(*Batch) error) (err error) {
	if !q.Prepared.WantsLines() {
		return ErrMetric
	}
	p := q.Prepared.program
	if e.hub == nil {
		return fmt.Errorf("%w: tail: nothing tells of new lines here", model.ErrInvalid)
	}
	t := &tail{q: q, emit: emit, quota: q.Quota, read: e.read}
	if t.quota == nil {
		t.quota = new(model.Quota)
	}
	if p.Filter != nil {
		t.filter = p.Filter()
		t.filter.Bind(ctx)
	}
	t.stages = p.Stages()
	t.stages.Bind(ctx, t.quota.TakeBytes)
	t.from = e.hub.follow(q.Tenant, syntax.Models(q.Prepared.log.Matchers), t.quota)
	defer func() {
		if stopErr := t.from.stop(); err == nil {
			err = stopErr
		}
		_ = t.quota.TakeBytes(-t.pendingBytes) // giving back does not fail
	}()
	defer t.followFurther(ctx, e.further)()
	if err := t.past(ctx, e); err != nil {
		return err
	}
	return t.follow(ctx)
}

// followFurther follows the lines of another source, too, until stop is called.
func (t *tail) followFurther(ctx context.Context, further Follower) (stop func()) {
	if further == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		req := &model.Request{
			Tenant: t.q.Tenant, Signal: model.Logs, Family: model.Text, Matchers: t.from.matchers, Quota: t.quota, Cost: t.q.Cost,
		}
		err := model.Caught(func() error {
			return further.Follow(ctx, req, func() { close(ready) }, t.from.see, t.from.lose)
		})
		if err != nil {
			t.from.fail(err)
		}
	}()
	select {
	case <-ready:
	case <-ended: // follow finds the error
	case <-ctx.Done():
	}
	return func() {
		cancel()
		<-ended
	}
}

// tail is one that follows lines. It is used by one goroutine.
type tail struct {
	q     *TailQuery
	emit  func(*Batch) error
	quota *model.Quota
	read  *read.Querier
	// oldest and horizon hide lines that have expired when they come.
	oldest  int64
	horizon *model.Horizon
	from    *follower
	filter  selection.RowFilter
	stages  selection.LineStages
	stream  model.Labels // that the stages know
	one     model.TextRows

	// sent has the lines of the past that may still come.
	seeds [2]maphash.Seed
	sent  map[lineSum]bool

	pending      []pendingLine // by time
	pendingBytes int64
}

// pendingLine is a line that waits until it is due.
type pendingLine struct {
	found
	due int64 // Unix nanoseconds
}

// past hands out the lines since the start.
func (t *tail) past(ctx context.Context, e *Engine) error {
	t.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	t.sent = make(map[lineSum]bool)
	if t.q.Limit <= 0 {
		return nil
	}
	q := &Query{
		Tenants: []string{t.q.Tenant}, Prepared: t.q.Prepared, Start: t.q.Start, End: e.now().Add(selection.MaxFuture).UnixNano(),
		Limit: t.q.Limit, Direction: Backward, Quota: t.quota, Cost: t.q.Cost,
	}
	x := e.execution(q)
	entries, err := t.readPast(ctx, x, q)
	if err != nil {
		return err
	}
	slices.Reverse(entries)
	held := int64(0)
	for i := range entries {
		t.sent[entries[i].sum] = true
		held += int64(len(entries[i].bytes)) + foundBytes
	}
	for rest := entries; len(rest) > 0; {
		n := min(len(rest), tailBatch)
		if err := t.send(rest[:n], nil); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return t.quota.TakeBytes(-held)
}

// readPast runs the query for the lines since the start.
func (t *tail) readPast(ctx context.Context, x *selection.Execution, q *Query) ([]found, error) {
	if t.q.Past != nil {
		past, done, err := t.q.Past(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
		ctx = past
	}
	return entries(ctx, x, q, &t.seeds)
}

func (t *tail) send(entries []found, dropped []Dropped) error {
	return t.emit(&Batch{Streams: gather(entries, nil, t.q.Categorize), Dropped: dropped})
}

// follow hands out lines as they come.
func (t *tail) follow(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		queue, bytes, dropped, err := t.from.take()
		if err != nil {
			return err
		}
		t.oldest, t.horizon = t.read.Horizon(t.q.Tenant, model.Logs)
		for i := range queue {
			if err := ctx.Err(); err != nil { // stages may take long for a single line
				return err
			}
			if err := t.take(&queue[i]); err != nil {
				return err
			}
		}
		if err := t.quota.TakeBytes(-bytes); err != nil {
			return err
		}
		if err := t.sendDue(dropped); err != nil {
			return err
		}
		if len(t.pending) > 0 {
			timer.Reset(time.Until(time.Unix(0, t.pending[0].due)))
		} else {
			timer.Reset(time.Hour)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.from.wake:
		case <-timer.C:
		}
	}
}

// take runs the query on a line that has come.
func (t *tail) take(w *queued) error {
	l, err := model.SplitLine(w.blob)
	if err != nil {
		return err
	}
	if w.time < t.oldest || t.horizon.MayHide(w.time) && w.time < t.horizon.Before(w.labels) {
		return nil
	}
	if len(t.sent) > 0 {
		if sum := sumOf(&t.seeds, w.labels, w.time, l.Text, l.Metadata); t.sent[sum] {
			delete(t.sent, sum)
			return nil
		}
	}
	if t.filter != nil {
		t.one = model.TextRows{Times: append(t.one.Times[:0], w.time), Bytes: l.Text, Ends: append(t.one.Ends[:0], uint32(len(l.Text)))}
		if len(t.filter.Select(nil, &t.one, 0, 1)) == 0 {
			return nil
		}
	}
	if t.stream == nil || !bytes.Equal(t.stream, w.labels) {
		t.stream = w.labels
		t.stages.SetStream(w.labels)
	}
	var out line.Result
	if ok, err := t.stages.Process(w.time, l.Text, l.Metadata, &out); err != nil || !ok {
		return err
	}
	f := found{time: w.time}
	f.copy(&out)
	size := int64(len(f.bytes)) + foundBytes
	if t.pendingBytes+size > pendingBytes || t.quota.TakeBytes(size) != nil {
		t.from.drop(Dropped{w.time, w.labels})
		return nil
	}
	t.pendingBytes += size
	due := time.Now().UnixNano() + t.q.Delay
	// A line of the past waits less, and one of the future no longer than others.
	if w.time <= due-t.q.Delay {
		due = w.time + t.q.Delay
	}
	at, _ := slices.BinarySearchFunc(t.pending, w.time, func(p pendingLine, at int64) int {
		return cmp.Or(cmp.Compare(p.time, at), -1) // after its equals
	})
	t.pending = slices.Insert(t.pending, at, pendingLine{f, due})
	return nil
}

// sendDue hands out the lines that are due, and all that are older than they.
func (t *tail) sendDue(dropped []Dropped) error {
	now, n := time.Now().UnixNano(), 0
	for i := range t.pending {
		if t.pending[i].due <= now {
			n = i + 1
		}
	}
	for n > 0 || len(dropped) > 0 {
		k := min(n, tailBatch)
		entries := make([]found, k)
		for i := range entries {
			entries[i] = t.pending[i].found
		}
		if err := t.send(entries, dropped); err != nil {
			return err
		}
		size := int64(0)
		for i := range entries {
			size += int64(len(entries[i].bytes)) + foundBytes
		}
		t.pendingBytes -= size
		if err := t.quota.TakeBytes(-size); err != nil {
			return err
		}
		t.pending = slices.Delete(t.pending, 0, k)
		n, dropped = n-k, nil
	}
	return nil
}

// sumOf returns what stands for a line of a stream.
func sumOf(seeds *[2]maphash.Seed, stream model.Labels, at int64, line []byte, metadata model.Labels) lineSum {
	sum := func(seed maphash.Seed) uint64 {
		h := maphash.Comparable(seed, at)
		for _, b := range [][]byte{stream, line, metadata} {
			h = h*0x9e3779b97f4a7c15 + maphash.Bytes(seed, b)
		}
		return h
	}
	return lineSum{sum(seeds[0]), sum(seeds[1])}
}

// lineSum stands for a line of a stream: 128 bits under seeds that no sender knows.
type lineSum struct{ a, b uint64 }
