package logql

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/cache/ram"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/readtest"
	"github.com/shaledb/shale/internal/store/head"
)

// TestQueriesOfAHead runs queries over buffers and local parts, whose pages are left out by their token
// filters: that must make no difference.
func TestQueriesOfAHead(t *testing.T) {
	texts := []string{
		`{app="x"}`,
		`{app="x"} |= "GET /cart/71 "`,
		`{app="x"} |= "71"`,
		`{app="x"} |= "user=ann"`,
		`{app="x"} |~ "(?i)USER=(ann|bob) "`,
		`{app="x"} |~ "k\\w+in took"`,
		`{app="x"} |= "Ünïcode" or "cart/12"`,
		`{app="x"} |> "<_>GET <_> took<_>"`,
		`{app="x"} != "GET" |= "id="`,
		`{app="x"} | logfmt | user="bob"`,
		`{app="x"} | trace="t17"`,
		`{app="x"} | trace=~"t1|t2" |= "POST"`,
		`{app="x"} | trace="T17"`,
		`{app="x"} |= "kaboom"`,
		`{app="x"} |~ "(?i)KABOOM: \\w+"`,
		`{app="x"} |= "abo"`,
		`{app="x"} |= "nothing of this kind"`,
		`{app="x"} |~ "rare|KABOOM"`,
	}
	skipped := int64(0)
	rapid.Check(t, func(t *rapid.T) {
		w := &world{readtest.NewWorld(streamsOf(rapid.SampledFrom([]int{1, 2, 30}).Draw(t, "streams"))...)}
		e, closeHead := drawHead(t, w)
		defer closeHead()
		for range 6 {
			text := rapid.SampledFrom(texts).Draw(t, "query")
			q := &Query{
				Tenants: []string{oneTenant}, Prepared: prepared(text), Start: math.MinInt64, End: math.MaxInt64,
				Limit:     rapid.SampledFrom([]int{0, 1, 10}).Draw(t, "limit"),
				Direction: Direction(rapid.IntRange(0, 1).Draw(t, "direction")), Categorize: true,
				Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 40}}, Cost: &model.Cost{},
			}
			got, err := e.Lines(context.Background(), q)
			if err != nil {
				t.Fatal(err)
			}
			skipped += got.Stats.Skipped
			var rows []string
			for _, s := range got.Streams {
				for _, x := range s.Entries {
					rows = append(rows, shown(x.Time, x.Line, s.Labels, x.Metadata, x.Parsed))
				}
			}
			want := w.expected(t, q)
			slices.Sort(rows)
			slices.Sort(want)
			if !slices.Equal(rows, want) {
				t.Fatalf("%s, limit %d, %s, %+v:\n got %q\nwant %q", text, q.Limit, q.Direction, got.Stats, rows, want)
			}
		}
	})
	if skipped == 0 {
		t.Error("no page was left out by its filter")
	}
}

// drawHead opens a head and puts lines into it and into the world.
func drawHead(t *rapid.T, w *world) (*Engine, func()) {
	now := int64(1_700_000_000 * time.Second)
	h, err := head.Open(context.Background(), head.Options{
		FS: vfs.NewMem(), Dir: "/head", Seed: 1, Node: "n", Now: func() int64 { return now },
		Registerer: prometheus.NewRegistry(), Truncate: func(uint64) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	at := int64(0)
	// Small pages have no filter as long as they are young.
	batches, pad := rapid.Uint64Range(1, 30).Draw(t, "batches"), ""
	if len(w.Streams) == 1 {
		batches, pad = min(batches, 10), strings.Repeat(" .", 3000)
	}
	for seq := range batches {
		b := &model.Batch{Tenant: oneTenant, Signal: model.Logs}
		for _, l := range w.Streams {
			n := rapid.SampledFrom([]int{0, 1, 1, 1, 40}).Draw(t, "lines")
			if pad != "" {
				n = 40
			}
			var lines []readtest.Line
			for range n {
				at++
				x := drawLine(t, now+at*7919%1_000_003*int64(time.Millisecond), at)
				x.Text += pad
				lines = append(lines, x)
			}
			if n == 0 {
				continue
			}
			for _, x := range lines {
				blob := model.AppendLine(nil, &model.Line{Text: []byte(x.Text), Metadata: x.Metadata})
				b.Text.AppendBlob(x.Time, model.KindText, blob, 0)
			}
			b.Labels.Append(uint32(len(b.Keys)), l)
			b.EndSeries(l.Key(1, model.Logs))
			w.Add(l, lines)
		}
		h.Apply(seq+1, b)
		if rapid.IntRange(0, 3).Draw(t, "flush") == 0 {
			if err := h.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if rapid.IntRange(0, 5).Draw(t, "merge") == 0 {
			if _, err := h.Work(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	pages, err := ram.New(ram.Options{MaxBytes: rapid.SampledFrom([]int64{0, 1 << 20}).Draw(t, "cache")})
	if err != nil {
		t.Fatal(err)
	}
	e := New(Options{Read: read.New(read.Options{Sources: []read.Source{h.Source(pages)}})})
	return e, func() {
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// drawLine draws a line like those of an application; n makes parts of it rare.
func drawLine(t *rapid.T, at, n int64) readtest.Line {
	x := readtest.Line{Time: at}
	user := []string{"ann", "bob", "Ünïcode", "käin"}[n%4]
	switch rapid.IntRange(0, 3).Draw(t, "form") {
	case 0:
		x.Text = fmt.Sprintf("GET /cart/%d took=%dms user=%s ok", n%100, n%7, user)
	case 1:
		x.Text = fmt.Sprintf(`POST id=%d user="%s" trace=t%d`, n, user, n%50)
	case 2:
		x.Text = user + " " + strings.Repeat("x", int(n%300))
	case 3:
		x.Text = fmt.Sprintf("%s took %d", user, n)
	}
	if n%97 == 0 {
		x.Text += " kaboom: rarely seen"
	}
	if n%3 == 0 {
		x.Metadata = model.LabelsOf("trace", fmt.Sprint("t", n%40))
	}
	return x
}
