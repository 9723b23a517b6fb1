package victorialogs

import (
	"context"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/watch"
)

// TestLooksForever: a count of a range without an end looks for copies to its end.
func TestLooksForever(t *testing.T) {
	r := model.TimeRange{Min: 1e18, Max: math.MaxInt64}
	d := &directory{req: &model.Request{Range: r, Cells: &model.TextCells{}}, unproven: r}
	if got := d.looks(r); got != looksEverywhere {
		t.Errorf("it looks %v", got)
	}
}

// TestLooksAtLittle: a count of a whole range is made in parts only if much of it is looked at for copies.
func TestLooksAtLittle(t *testing.T) {
	r := model.TimeRange{Min: 1e18, Max: 1e18 + 800e9}
	for _, test := range []struct {
		unproven model.TimeRange
		parts    bool
	}{
		{r, true}, {model.TimeRange{Min: r.Max - 99e9, Max: r.Max}, false}, {model.TimeRange{Min: r.Max - 101e9, Max: r.Max}, true},
		{model.TimeRange{Min: r.Max - 99e9, Max: r.Max + 500e9}, false}, {model.TimeRange{Min: 0, Max: r.Max - 100e9}, true}, {model.TimeRange{Min: 1, Max: 0}, false},
	} {
		d := &directory{source: new(Source), req: &model.Request{Range: r, Cells: &model.TextCells{Bytes: true}}, unproven: test.unproven}
		if text := d.statistics(r, buckets{counted: true}, true); strings.Contains(text, "sum(n)") != test.parts {
			t.Errorf("%v of %v: %s", test.unproven, r, text)
		}
	}
}

// TestCountsProven: where it is known that no line is there twice, times are not asked for.
func TestCountsProven(t *testing.T) {
	const row = `{"_stream":"{app=\"web\"}","_time":"2001-09-09T01:46:40Z","n":"3"`
	for _, test := range []struct {
		name, row       string
		times           func(at int64) int64
		fresh           bool
		rows, lines     int
		contains, lacks string
	}{
		{name: "everywhere", row: row + "}", times: func(int64) int64 { return 1 }, rows: 3, lacks: "times"},
		{name: "nowhere", row: row + `,"times":"3"}`, times: func(int64) int64 { return 0 }, rows: 3, contains: "count_uniq(_time) times"},
		{name: "nowhere, with a copy", row: row + `,"times":"2"}`, times: func(int64) int64 { return 0 }, rows: 2, lines: 1, contains: "count_uniq(_time) times"},
		{name: "for a query that wants all computed", row: row + `,"times":"3"}`, times: func(int64) int64 { return 1 }, fresh: true, rows: 3, contains: "count_uniq(_time) times"},
		{name: "partly", row: row + `,"times":"1","recent":"1"}`, times: func(at int64) int64 { return (at + 1) % 2 }, rows: 3, contains: "count_uniq(_time) if (_time:[2001-09-09T01:"},
		{name: "partly, with a copy", row: row + `,"times":"1","recent":"2"}`, times: func(at int64) int64 { return (at + 1) % 2 }, rows: 2, lines: 1, contains: "count() if (_time:[2001-09-09T01:"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked string
			read := 0
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				if q := r.FormValue("query"); strings.Contains(q, "| stats ") {
					asked = q
					io.WriteString(rw, test.row+"\n")
					return
				}
				read++
				io.WriteString(rw, rowOne+rowTwo+rowTwo)
			})
			from := int64(1e18)/watch.Window - 1
			var now atomic.Int64
			now.Store(1e18 + 5*watch.Window)
			w.watch.Close()
			w.watch = watch.New(watch.Options{
				Count: func(_ context.Context, _ Account, _ model.TimeRange, _ bool, each func(w, lines int64, sum float64)) error {
					for i := range int64(4) {
						each(from+i, 1, 0)
					}
					return nil
				},
				Prove: func(_ context.Context, _ Account, _ model.TimeRange, each func(w, lines, times int64)) error {
					for i := range int64(4) {
						each(from+i, 1, test.times(i))
					}
					return nil
				},
				Note: func(Account, model.TimeRange) {}, Counted: func(string) {}, Proved: func(string) {},
				Every: 10 * time.Second, Counts: 1, Now: now.Load,
			})
			r := model.TimeRange{Min: from * watch.Window, Max: (from+4)*watch.Window - 1}
			for range 4 { // counted, settled, looked for copies, and known
				w.watch.Unproven(context.Background(), Account{}, r)
				w.watch.Wait()
				now.Add(int64(10 * time.Second))
			}
			w.watch.Check(context.Background(), []Account{{}}, r)
			w.watch.Wait()
			req := request()
			req.Range.Max = req.Range.Min + watch.Window + watch.Window/2
			req.Cells, req.Cost.Fresh = &model.TextCells{Step: 10 * watch.Window, Phase: 1e18 - 1}, test.fresh
			cursors, err := w.SelectText(context.Background(), req)
			if err != nil || !cursors[0].Next(context.Background()) {
				t.Fatal(err)
			}
			chunks, err := cursors[0].Chunks(context.Background(), nil)
			if err != nil || len(chunks) != 1 || chunks[0].Rows != test.rows || read != test.lines {
				t.Errorf("%+v after %d reads, %v", chunks, read, err)
			}
			if !strings.Contains(asked, test.contains) || test.lacks != "" && strings.Contains(asked, test.lacks) {
				t.Errorf("asked for %s", asked)
			}
			if err := cursors[0].Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
