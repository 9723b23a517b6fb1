package selection

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// heavyPage takes more of the query's memory than its chunk says.
type heavyPage struct {
	stillPage
	quota *model.Quota
	bytes int64
	has   bool
	// metadata is what it takes besides when its metadata is read, and holdsIt says that it has that.
	metadata int64
	holdsIt  bool
	reads    atomic.Int64
	err      error // of each read, if it is set
	// skips says that it must be fetched to tell whether it can be skipped, as that of a peer.
	skips  bool
	panics bool
}

func (p *heavyPage) Skip(context.Context) (bool, error) {
	if !p.skips {
		return false, nil
	}
	return false, p.take(&p.has, p.bytes)
}

func (p *heavyPage) ReadText(ctx context.Context, i int, want model.TextWant, dst *model.TextRows) error {
	p.reads.Add(1)
	if p.panics {
		panic("a hostile page")
	}
	if p.err != nil {
		return p.err
	}
	if err := p.take(&p.has, p.bytes); err != nil {
		return err
	}
	if want&model.WantMetadata != 0 {
		if err := p.take(&p.holdsIt, p.metadata); err != nil {
			return err
		}
	}
	return p.stillPage.ReadText(ctx, i, want, dst)
}

func (p *heavyPage) take(has *bool, bytes int64) error {
	if *has {
		return nil
	}
	if err := p.quota.TakeBytes(bytes); err != nil {
		// Others may give back all that they have before the reader hears of it.
		time.Sleep(100*time.Microsecond + rand.N(2*time.Millisecond))
		return err
	}
	*has = true
	time.Sleep(time.Millisecond) // as from a server, so that workers meet
	return nil
}

func (p *heavyPage) Release() {
	if p.has {
		p.has = false
		_ = p.quota.TakeBytes(-p.bytes)
	}
	if p.holdsIt {
		p.holdsIt = false
		_ = p.quota.TakeBytes(-p.metadata)
	}
}

// heavyScan scans some streams, each of which has some pages with the same times, and checks that all memory
// was given back.
func heavyScan(t *testing.T, workers, streams, overlapping int, page func(stream, n int) *heavyPage) (lines int64, err error) {
	t.Helper()
	query, err := syntax.ParseLog(`{a="b"} |= "x"`)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := Compile(query.Stages)
	if err != nil {
		t.Fatal(err)
	}
	quota := &model.Quota{MaxBytes: heavyLimit}
	x := New(Plan{Direction: Backward, Program: prog, Quota: quota, Cost: &model.Cost{}, Workers: workers})
	x.sink, x.collector = &someSink{limit: 10}, &someSink{limit: 10}
	l := newLayout(defaultMergeBytes)
	for s := range int32(streams) {
		var chunks []model.TextChunk
		for n := range overlapping {
			p := page(int(s), n)
			p.quota = quota
			p.rows.Times, p.rows.Ends = []int64{0}, []uint32{1}
			if p.rows.Bytes == nil {
				p.rows.Bytes = []byte("y")
			}
			chunks = append(chunks, model.TextChunk{Rows: 1, Bytes: 1, Page: p, Order: uint64(n)})
		}
		x.streams = append(x.streams, stream{labels: model.LabelsOf("a", "b")})
		l.addStream(s, chunks, model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64})
	}
	err = x.scanAll(t.Context(), l)
	if err := quota.TakeBytes(heavyLimit); err != nil {
		t.Errorf("not all was given back: %v", err)
	}
	return x.stats.lines.Load(), err
}

const heavyLimit = 1 << 20

// TestMoreInFlightThanFits: pages that are larger than they were said to be wait for each other, and only one
// that does not fit by itself ends the query.
func TestMoreInFlightThanFits(t *testing.T) {
	for _, c := range []struct {
		overlapping int
		bytes       int64
		want        error
	}{
		{1, heavyLimit / 5, nil}, {1, heavyLimit * 2 / 5, nil}, {1, heavyLimit * 4 / 5, nil}, {1, heavyLimit + 1, model.ErrLimit},
		// A worker that has one page of its piece needs a second one.
		{2, heavyLimit / 5, nil}, {2, heavyLimit * 2 / 5, nil}, {2, heavyLimit / 2, nil}, {2, heavyLimit/2 + 1, model.ErrLimit},
		{3, heavyLimit / 7, nil}, {3, heavyLimit / 3, nil}, {3, heavyLimit/3 + 1, model.ErrLimit},
	} {
		for i, workers := range []int{1, 4, maxWorkers} {
			streams := 40 / c.overlapping
			lines, err := heavyScan(t, workers, streams, c.overlapping, func(s, _ int) *heavyPage {
				return &heavyPage{bytes: c.bytes, skips: (s+i)%2 == 0}
			})
			if !errors.Is(err, c.want) || c.want == nil && lines != int64(streams*c.overlapping) {
				t.Errorf("%d workers, pieces of %d pages of %d bytes: %d lines, %v; want %v", workers, c.overlapping, c.bytes, lines, err, c.want)
			}
		}
	}
}

// TestMetadataThatDoesNotFit: workers that have lines of pages, and need metadata of them, wait for each
// other as long as none of the rows has been handed on.
func TestMetadataThatDoesNotFit(t *testing.T) {
	for _, workers := range []int{1, 4, maxWorkers} {
		lines, err := heavyScan(t, workers, 40, 1, func(int, int) *heavyPage {
			return &heavyPage{stillPage: stillPage{rows: model.TextRows{Bytes: []byte("x")}}, bytes: heavyLimit * 2 / 5, metadata: heavyLimit * 2 / 5}
		})
		if err != nil || lines != 40 {
			t.Errorf("%d workers: %d lines, %v", workers, lines, err)
		}
	}
}

// TestOtherLimitsEndTheQuery at once: no memory that others give back mends them.
func TestOtherLimitsEndTheQuery(t *testing.T) {
	broken := fmt.Errorf("%w: a line cannot be shown", model.ErrLimit)
	pages := make([]*heavyPage, 40)
	_, err := heavyScan(t, 4, 40, 1, func(s, _ int) *heavyPage {
		pages[s] = &heavyPage{bytes: 1}
		if s == 3 {
			pages[s].err = broken
		}
		return pages[s]
	})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	if n := pages[3].reads.Load(); n != 1 {
		t.Errorf("the page was read %d times", n)
	}
}

// TestPanicEndsTheQuery, and not the process.
func TestPanicEndsTheQuery(t *testing.T) {
	_, err := heavyScan(t, 4, 40, 1, func(s, _ int) *heavyPage { return &heavyPage{bytes: 1, panics: s == 3} })
	if err == nil || err.Error() != "unexpected error: a hostile page" {
		t.Error(err)
	}
}

// TestEachReadsAloneBeforeTheQueryIsRefused: two workers that have handed on rows fail at the same time, and
// give back what their reads had taken. Each reads once more while the other one waits. Only then is there no
// memory for the query.
func TestEachReadsAloneBeforeTheQueryIsRefused(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &crew{pages: new(pages), busy: 2}
	c.done = sync.NewCond(&c.mu)
	defer context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.done.Broadcast()
	})()
	var reading atomic.Int64
	var again [2]int
	var workers sync.WaitGroup
	for i := range again {
		workers.Go(func() {
			w := &waiter{task: i}
			for c.await(ctx, w) {
				again[i]++
				if n := reading.Add(1); n != 1 {
					t.Errorf("%d workers read at the same time", n)
				}
				time.Sleep(time.Millisecond)
				reading.Add(-1)
			}
			cancel() // as a query ends that is refused
		})
	}
	workers.Wait()
	if again != [2]int{1, 1} {
		t.Errorf("the workers read %d times alone, expected once each", again)
	}
}
