package selection

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
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
}

func (p *heavyPage) ReadText(ctx context.Context, i int, want model.TextWant, dst *model.TextRows) error {
	p.reads.Add(1)
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

// heavyScan scans 40 streams, each of which has some pages with the same times, and checks that all memory was
// given back.
func heavyScan(t *testing.T, workers, overlapping int, page func(stream, n int, q *model.Quota) *heavyPage) (lines int64, err error) {
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
	for s := range int32(40) {
		var chunks []model.TextChunk
		for n := range overlapping {
			p := page(int(s), n, quota)
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
	} {
		for _, workers := range []int{1, 2, 4, maxWorkers} {
			lines, err := heavyScan(t, workers, c.overlapping, func(int, int, *model.Quota) *heavyPage { return &heavyPage{bytes: c.bytes} })
			if !errors.Is(err, c.want) || c.want == nil && lines != int64(40*c.overlapping) {
				t.Errorf("%d workers, pieces of %d pages of %d bytes: %d lines, %v; want %v", workers, c.overlapping, c.bytes, lines, err, c.want)
			}
		}
	}
}

// TestOtherLimitsEndTheQuery at once: no memory that others give back mends them.
func TestOtherLimitsEndTheQuery(t *testing.T) {
	broken := fmt.Errorf("%w: a line cannot be shown", model.ErrLimit)
	pages := make([]*heavyPage, 40)
	_, err := heavyScan(t, 4, 1, func(s, _ int, _ *model.Quota) *heavyPage {
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
