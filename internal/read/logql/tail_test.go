package logql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/readtest"
)

// store keeps what is pushed, and tells of it once it is there.
type store struct {
	memory *readtest.Memory

	mu       sync.RWMutex
	watchers map[int]func(*model.Batch)
	next     int
}

func newStore() *store {
	return &store{memory: readtest.NewMemory(1), watchers: map[int]func(*model.Batch){}}
}

func (s *store) engine() *Engine {
	return New(Options{Read: read.New(read.Options{Sources: []read.Source{s.memory}}), Watch: s})
}

func (s *store) Watch(fn func(*model.Batch)) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	at := s.next
	s.watchers[at] = fn
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, at)
	}
}

// lineSource gives the labels of a batch's only stream.
type lineSource struct{ labels model.Labels }

func (s lineSource) BuildLabels(_ int, b *model.LabelsBuilder) {
	for n, v, rest, ok := s.labels.Next(); ok; n, v, rest, ok = rest.Next() {
		b.Add(n, v)
	}
}

func (s *store) push(tenant string, l model.Labels, lines ...readtest.Line) {
	b := &model.Batch{Tenant: tenant, Signal: model.Logs, Source: lineSource{l}}
	for _, x := range lines {
		blob := model.AppendLine(nil, &model.Line{Text: []byte(x.Text), Metadata: x.Metadata})
		b.Text.AppendBlob(x.Time, model.KindText, blob, 0)
	}
	b.EndSeries(l.Key(1, model.Logs))
	b.Labels.Append(0, l)
	s.memory.Apply(b)
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, fn := range s.watchers {
		fn(b)
	}
}

func textOf(b *Batch) (out []string) {
	for _, s := range b.Streams {
		for _, e := range s.Entries {
			out = append(out, fmt.Sprintf("%s %s", s.Labels, e.Line))
		}
	}
	return out
}

// TestTailLosesNothing begins to follow while lines are pushed: each comes once.
func TestTailLosesNothing(t *testing.T) {
	const pushers, each = 4, 400
	s := newStore()
	e := s.engine()
	l := model.LabelsOf("app", "x")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wait sync.WaitGroup
	started := make(chan struct{})
	for p := range pushers {
		wait.Go(func() {
			for i := range each {
				if p == 0 && i == each/2 {
					close(started)
				}
				s.push("t", l, readtest.Line{Time: int64(1000 + i/10), Text: fmt.Sprint(p, "-", i)})
				s.push("t", model.LabelsOf("app", "y"), readtest.Line{Time: int64(1000 + i/10), Text: "other"})
				s.push("u", l, readtest.Line{Time: int64(1000 + i/10), Text: "of another"})
			}
		})
	}
	<-started
	seen := make(map[string]int)
	pool := &model.QueryPool{MaxBytes: 1 << 30}
	q := &TailQuery{Tenant: "t", Prepared: prepared(`{app="x"}`), Limit: 1 << 20, Quota: &model.Quota{Pool: pool}, Cost: &model.Cost{}}
	done := errors.New("all are there")
	err := e.Tail(ctx, q, func(b *Batch) error {
		for _, x := range textOf(b) {
			seen[strings.TrimPrefix(x, `{app="x"} `)]++
		}
		if len(b.Dropped) > 0 {
			return fmt.Errorf("%d are dropped", len(b.Dropped))
		}
		if len(seen) == pushers*each {
			return done
		}
		return nil
	})
	wait.Wait()
	if !errors.Is(err, done) {
		t.Fatal(err)
	}
	for line, n := range seen {
		if n != 1 || strings.Contains(line, "o") {
			t.Errorf("%s came %d times", line, n)
		}
	}
	if len(s.watchers) != 0 {
		t.Error("it is watched on")
	}
	q.Quota.Release()
	if pool.Used() != 0 {
		t.Errorf("%d bytes stay charged", pool.Used())
	}
}

// TestTailDelays holds lines until older ones can have come.
func TestTailDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		e := s.engine()
		a, b := model.LabelsOf("app", "a"), model.LabelsOf("app", "b")
		begin := time.Now()
		at := func(d time.Duration) int64 { return begin.Add(d).UnixNano() }
		for i := range 5 {
			s.push("t", a, readtest.Line{Time: at(-time.Duration(i) * time.Minute), Text: fmt.Sprint("past ", i)})
		}
		ctx, cancel := context.WithCancel(context.Background())
		var got []string
		var wait sync.WaitGroup
		q := &TailQuery{Tenant: "t", Prepared: prepared(`{app=~".+"}`), Start: at(-3 * time.Minute), Limit: 2, Delay: int64(5 * time.Second)}
		wait.Go(func() {
			err := e.Tail(ctx, q, func(b *Batch) error {
				got = append(got, fmt.Sprint(time.Since(begin)), strings.Join(textOf(b), ", "))
				return nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		synctest.Wait()
		time.Sleep(time.Second)
		s.push("t", b, readtest.Line{Time: at(time.Second), Text: "2"}, readtest.Line{Time: at(time.Hour), Text: "future"})
		time.Sleep(time.Second)
		s.push("t", a, readtest.Line{Time: at(0), Text: "1"}, readtest.Line{Time: at(-time.Hour), Text: "late"})
		time.Sleep(time.Minute)
		cancel()
		wait.Wait()
		want := []string{
			"0s", `{app="a"} past 1, {app="a"} past 0`,
			"2s", `{app="a"} late`,
			"5s", `{app="a"} 1`,
			"6s", `{app="b"} 2, {app="b"} future`,
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

// TestTailDrops tells a client that is too slow what it misses.
func TestTailDrops(t *testing.T) {
	s := newStore()
	e := s.engine()
	l := model.LabelsOf("app", "x")
	first := make(chan struct{})
	pushed := make(chan struct{})
	go func() {
		<-first
		const each = 50
		for i := range 3 * queueRows / each {
			var lines [each]readtest.Line
			for k := range lines {
				lines[k] = readtest.Line{Time: int64(i*each + k + 2), Text: "x"}
			}
			s.push("t", l, lines[:]...)
		}
		close(pushed)
	}()
	s.push("t", l, readtest.Line{Time: 1, Text: "x"})
	lines, dropped := 0, 0
	enough := errors.New("enough")
	err := e.Tail(context.Background(), &TailQuery{Tenant: "t", Prepared: prepared(`{app="x"}`), Limit: 1}, func(b *Batch) error {
		if lines == 0 {
			close(first)
			<-pushed
		}
		lines += len(textOf(b))
		for _, d := range b.Dropped {
			if d.Labels.String() != `{app="x"}` || d.Time < queueRows {
				t.Error(d)
			}
		}
		if dropped += len(b.Dropped); dropped > 0 && lines > queueRows {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || dropped != maxDropped || lines != queueRows+1 {
		t.Error(err, lines, dropped)
	}
}

// TestTailEnds with an error that the labels of a push bring.
func TestTailEnds(t *testing.T) {
	s := newStore()
	e := s.engine()
	begun := make(chan struct{})
	go func() {
		<-begun
		l := model.LabelsOf("app", "x")
		s.push("t", slices.Concat(l, l), readtest.Line{Time: 2})
	}()
	s.push("t", model.LabelsOf("app", "x"), readtest.Line{Time: 1})
	err := e.Tail(context.Background(), &TailQuery{Tenant: "t", Prepared: prepared(`{app="x"}`), Limit: 1}, func(*Batch) error {
		close(begun)
		return nil
	})
	if !errors.Is(err, model.ErrInvalid) {
		t.Error(err)
	}
	for _, text := range []string{`{`, `rate({a="b"}[1m])`, `{a="b"} | line_format "{{"`} {
		p, err := Prepare(text)
		if err == nil {
			err = e.Tail(context.Background(), &TailQuery{Tenant: "t", Prepared: p}, nil)
		}
		if !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestTailPast: the lines of the past are read as one is told, and what bounds that is over before they are
// handed out.
func TestTailPast(t *testing.T) {
	s := newStore()
	e := s.engine()
	s.push("t", model.LabelsOf("app", "x"), readtest.Line{Time: 1, Text: "past"})
	turns, begun := 0, 0
	refusal, done := errors.New("no turn"), errors.New("seen")
	q := &TailQuery{Tenant: "t", Prepared: prepared(`{app="x"}`), Limit: 1, Past: func(ctx context.Context) (context.Context, func(), error) {
		turns, begun = turns+1, begun+1
		return ctx, func() { turns-- }, nil
	}}
	err := e.Tail(t.Context(), q, func(*Batch) error {
		if turns != 0 || begun != 1 {
			t.Errorf("%d turns of %d are held", turns, begun)
		}
		return done
	})
	if !errors.Is(err, done) {
		t.Error(err)
	}
	q.Past = func(ctx context.Context) (context.Context, func(), error) {
		ctx, cancel := context.WithDeadline(ctx, time.Unix(0, 0))
		turns++
		return ctx, func() { turns--; cancel() }, nil
	}
	if err := e.Tail(t.Context(), q, nil); !errors.Is(err, context.DeadlineExceeded) || turns != 0 {
		t.Error(err, turns)
	}
	q.Past = func(context.Context) (context.Context, func(), error) { return nil, nil, refusal }
	if err := e.Tail(t.Context(), q, nil); !errors.Is(err, refusal) {
		t.Error(err)
	}
}

// TestTailHidesExpired: a line that has expired when it comes is not handed out.
func TestTailHidesExpired(t *testing.T) {
	s := newStore()
	now := time.Now().UnixNano()
	e := New(Options{Watch: s, Read: read.New(read.Options{Sources: []read.Source{s.memory}, Horizon: func(string, model.Signal, int64) (int64, *model.Horizon) {
		return 0, &model.Horizon{Latest: now - 5, Before: func(l model.Labels) int64 {
			if string(l.Get("app")) == "short" {
				return now - 5
			}
			return now - 50
		}}
	}})})
	s.push("t", model.LabelsOf("app", "first"), readtest.Line{Time: now, Text: "first"})
	var got []string
	done := errors.New("seen")
	err := e.Tail(t.Context(), &TailQuery{Tenant: "t", Prepared: prepared(`{app=~".+"}`), Start: now, Limit: 1}, func(b *Batch) error {
		for _, st := range b.Streams {
			for _, x := range st.Entries {
				got = append(got, string(x.Line))
			}
		}
		switch len(got) {
		case 1: // those after it are followed
			s.push("t", model.LabelsOf("app", "short"), readtest.Line{Time: now - 20, Text: "expired"})
			s.push("t", model.LabelsOf("app", "short"), readtest.Line{Time: now - 2, Text: "young"})
			s.push("t", model.LabelsOf("app", "long"), readtest.Line{Time: now - 60, Text: "expired, too"})
			s.push("t", model.LabelsOf("app", "long"), readtest.Line{Time: now - 20, Text: "old"})
		case 3:
			return done
		}
		return nil
	})
	if slices.Sort(got); !errors.Is(err, done) || !slices.Equal(got, []string{"first", "old", "young"}) {
		t.Error(got, err)
	}
}
