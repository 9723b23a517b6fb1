package selection

import (
	"context"
	"errors"
	"math"
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
}

func (p *heavyPage) ReadText(ctx context.Context, i int, want model.TextWant, dst *model.TextRows) error {
	if !p.has {
		if err := p.quota.TakeBytes(p.bytes); err != nil {
			return err
		}
		p.has = true
		time.Sleep(time.Millisecond) // as from a server, so that workers meet
	}
	return p.stillPage.ReadText(ctx, i, want, dst)
}

func (p *heavyPage) Release() {
	if p.has {
		p.has = false
		_ = p.quota.TakeBytes(-p.bytes)
	}
}

// TestMoreInFlightThanFits: pages that are larger than they were said to be wait for each other, and only one
// that does not fit by itself ends the query.
func TestMoreInFlightThanFits(t *testing.T) {
	const limit = 1 << 20
	query, err := syntax.ParseLog(`{a="b"} |= "x"`)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := Compile(query.Stages)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		bytes int64
		want  error
	}{{limit / 5, nil}, {limit * 2 / 5, nil}, {limit * 4 / 5, nil}, {limit + 1, model.ErrLimit}} {
		quota := &model.Quota{MaxBytes: limit}
		x := New(Plan{Direction: Backward, Program: prog, Quota: quota, Cost: &model.Cost{}, Workers: maxWorkers})
		x.sink = &someSink{limit: 10}
		l := newLayout(defaultMergeBytes)
		for s := range int32(40) {
			p := &heavyPage{quota: quota, bytes: c.bytes}
			p.rows.Times, p.rows.Bytes, p.rows.Ends = []int64{0}, []byte("y"), []uint32{1}
			x.streams = append(x.streams, stream{labels: model.LabelsOf("a", "b")})
			l.addStream(s, []model.TextChunk{{Rows: 1, Bytes: 1, Page: p}}, model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64})
		}
		if err := x.scanAll(t.Context(), l); !errors.Is(err, c.want) {
			t.Errorf("pages of %d bytes: %v, want %v", c.bytes, err, c.want)
		}
		if c.want == nil && x.stats.lines.Load() != 40 {
			t.Errorf("pages of %d bytes: %d lines", c.bytes, x.stats.lines.Load())
		}
		if err := quota.TakeBytes(limit); err != nil {
			t.Errorf("pages of %d bytes: not all was given back: %v", c.bytes, err)
		}
	}
}
