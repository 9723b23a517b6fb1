package victorialogs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/logqltest"
	"github.com/shaledb/shale/internal/read/readtest"
	"github.com/shaledb/shale/internal/read/victorialogs"
	"github.com/shaledb/shale/internal/read/victorialogs/victorialogstest"
)

// linesServer has lines, and answers as VictoriaLogs does what counts or selects them.
type linesServer struct {
	*logqltest.Dataset
	mu    sync.Mutex
	asked []string
	rows  int // of all responses
	lines int // of them
	// before, if set, is called before each request is answered.
	before func(asked int)
}

var (
	linesWithin = regexp.MustCompile(`_time:\[([^,]+),([^\]]+)\]`)
	linesOf     = regexp.MustCompile(`\{"app"="(\w+)"\}`)
	linesStep   = regexp.MustCompile(`_time:(\d+)ns`)
	linesLike   = regexp.MustCompile(`_msg:~("(?:[^"\\]|\\.)*")`)
	linesValues = regexp.MustCompile(`\| copy _stream "shale stream" \| filter (.*?) \| delete "shale stream"`)
)

func (s *linesServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.FormValue("query")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, query)
	if s.before != nil {
		s.before(len(s.asked))
	}
	ends := linesWithin.FindStringSubmatch(query)
	from, _ := time.Parse(time.RFC3339Nano, ends[1])
	to, _ := time.Parse(time.RFC3339Nano, ends[2])
	type line struct {
		logqltest.Line
		stream string
	}
	var likes []*regexp.Regexp // alternatives
	for _, m := range linesLike.FindAllStringSubmatch(query, -1) {
		pattern, _ := strconv.Unquote(m[1])
		likes = append(likes, regexp.MustCompile(pattern))
	}
	has := func(text string) bool {
		return likes == nil || slices.ContainsFunc(likes, func(like *regexp.Regexp) bool { return like.MatchString(text) })
	}
	var all []line
	for _, x := range s.Streams {
		if app := linesOf.FindStringSubmatch(query); app != nil && app[1] != x.Labels[1] {
			continue
		}
		var fields []string
		for i := 0; i < len(x.Labels); i += 2 {
			fields = append(fields, x.Labels[i]+"="+strconv.Quote(x.Labels[i+1]))
		}
		stream := "{" + strings.Join(fields, ",") + "}"
		if values := linesValues.FindStringSubmatch(query); values != nil && !victorialogs.HasValues(values[1], stream) {
			continue
		}
		for _, l := range x.Lines {
			if l.Time >= from.UnixNano() && l.Time <= to.UnixNano() && has(l.Text) {
				all = append(all, line{l, stream})
			}
		}
	}
	write := func(row map[string]string) {
		s.rows++
		b, _ := json.Marshal(row)
		w.Write(append(b, '\n'))
	}
	stamp := func(t int64) string { return time.Unix(0, t).UTC().Format(time.RFC3339Nano) }
	if strings.Contains(query, "| stats by ") {
		step := int64(1 << 62)
		if m := linesStep.FindStringSubmatch(query); m != nil {
			step, _ = strconv.ParseInt(m[1], 10, 64)
		}
		type cell struct {
			stream string
			bucket int64
		}
		type counted struct{ n, lo, hi int64 }
		cells := map[cell]*counted{}
		for _, l := range all {
			at := cell{l.stream, l.Time / step * step}
			c := cells[at]
			if c == nil {
				c = &counted{lo: l.Time, hi: l.Time}
				cells[at] = c
			}
			c.n, c.lo, c.hi = c.n+1, min(c.lo, l.Time), max(c.hi, l.Time)
		}
		for at, c := range cells {
			write(map[string]string{"_stream": at.stream, "_time": stamp(at.bucket), "n": fmt.Sprint(c.n), "lo": stamp(c.lo), "hi": stamp(c.hi)})
		}
		return
	}
	s.lines += len(all)
	for _, l := range all {
		row := map[string]string{"_time": stamp(l.Time), "_stream": l.stream, "_msg": l.Text}
		for i := 0; i < len(l.Metadata); i += 2 {
			row[l.Metadata[i]] = l.Metadata[i+1]
		}
		write(row)
	}
}

// newestData has lines of a day, with times of that precision.
func newestData(seed uint64, lines int, precision int64) *logqltest.Dataset {
	r := rand.New(rand.NewPCG(seed, 5))
	d := &logqltest.Dataset{}
	for _, labels := range [][]string{{"app", "web", "pod", "1"}, {"app", "web", "pod", "2"}, {"app", "db", "pod", "1"}} {
		s := logqltest.Stream{Labels: labels}
		for range lines {
			l := logqltest.Line{Time: logqltest.Begin + r.Int64N(24*int64(time.Hour))/precision*precision, Text: fmt.Sprintf("line %d of %s", r.IntN(50), labels[3])}
			if r.IntN(2) == 0 {
				l.Metadata = []string{"trace_id", fmt.Sprint(r.IntN(9))}
			}
			s.Lines = append(s.Lines, l)
			if labels[1] == "db" && r.IntN(20) == 0 { // it came twice
				s.Lines = append(s.Lines, l)
			}
		}
		d.Streams = append(d.Streams, s)
	}
	return victorialogstest.AsStored(d)
}

// TestNewest: the newest lines of a stream take two requests that count, and one for the lines. They are the
// right ones where many lines have one time, where some are there twice, and where there are too few.
func TestNewest(t *testing.T) {
	const second = int64(time.Second)
	for _, test := range []struct {
		name      string
		lines     int
		precision int64
		limit     int
		most      int // requests
		again     int // of the same query
	}{
		{"of many", 5000, 1, 100, 3, 2},
		{"of as many as one minute has", 20_000, 1, 20, 2, 2},
		{"of those of some hours", 100, 1, 100, 5, 2},
		{"of few", 30, 1, 100, 5, 2},
		{"of none", 0, 1, 100, 5, 1},
		{"of whole seconds", 5000, second, 100, 3, 2},
		{"of whole hours", 5000, 3600 * second, 100, 4, 4},
		{"of one time", 5000, 86400 * second, 100, 6, 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := &linesServer{Dataset: newestData(3, test.lines, test.precision)}
			at := httptest.NewServer(server)
			defer at.Close()
			theirs, ours := logqltest.Over(source(t, at.URL, "7:1", 0, 0)), logqltest.InMemory(server.Dataset)
			for _, text := range []string{`{app="web"}`, `{app="db"}`, `{app=~".+"}`} {
				q := logqltest.Query{Text: text, Start: logqltest.Begin - 3600*second, End: logqltest.Begin + 24*3600*second, Limit: test.limit}
				server.asked = nil
				got := logqltest.Run(context.Background(), theirs, logqltest.Tenant, &q)
				want := logqltest.Run(context.Background(), ours, logqltest.Tenant, &q)
				if diff := logqltest.Diff(want, got, false); diff != "" {
					t.Errorf("%s: %s", text, diff)
				}
				if text == `{app="web"}` && len(server.asked) > test.most {
					t.Errorf("%s took %d requests, want %d at most: %s", text, len(server.asked), test.most, strings.Join(server.asked, "\n"))
				}
				server.asked = nil
				got = logqltest.Run(context.Background(), theirs, logqltest.Tenant, &q)
				if diff := logqltest.Diff(want, got, false); diff != "" {
					t.Errorf("%s again: %s", text, diff)
				}
				if text == `{app="web"}` && len(server.asked) > test.again {
					t.Errorf("%s again took %d requests, want %d at most: %s", text, len(server.asked), test.again, strings.Join(server.asked, "\n"))
				}
			}
		})
	}
}

// TestNewestFiltered: of the newest lines that have a text, few others are fetched. Lines that only may have
// what is wanted are fetched until there are enough.
func TestNewestFiltered(t *testing.T) {
	server := &linesServer{Dataset: newestData(6, 10_000, 1)}
	at := httptest.NewServer(server)
	defer at.Close()
	theirs, ours := logqltest.Over(source(t, at.URL, "7:1", 0, 0)), logqltest.InMemory(server.Dataset)
	for _, test := range []struct {
		filter string
		rows   int // of cells and lines, at most
	}{
		{`|= "line 7 "`, 200},
		{`|= "line 7 " != "of 2"`, 400},
		{`|~ "line (7|8) "`, 1000},
		{`|= "line 7 " | line_format "{{.pod}}" |= "1"`, 400},
		{`|= "line 7 " | line_format "{{.pod}}" |= "3"`, 3000}, // none
		{`|= "no such line"`, 0},
		{`|= "line"`, 200},
	} {
		for _, span := range []time.Duration{24 * time.Hour, 720 * time.Hour, 30 * time.Minute} {
			end := logqltest.Begin + 24*int64(time.Hour)
			q := logqltest.Query{Text: `{app="web"} ` + test.filter, Start: end - int64(span), End: end, Limit: 20}
			server.asked, server.rows = nil, 0
			got, want := logqltest.Run(context.Background(), theirs, logqltest.Tenant, &q), logqltest.Run(context.Background(), ours, logqltest.Tenant, &q)
			if diff := logqltest.Diff(want, got, false); diff != "" {
				t.Errorf("%s over %s: %s", test.filter, span, diff)
			}
			t.Logf("%s over %s: %d requests, %d rows", test.filter, span, len(server.asked), server.rows)
			if server.rows > test.rows {
				t.Errorf("%s over %s: %d rows are fetched, want %d at most, in %d requests", test.filter, span, server.rows, test.rows, len(server.asked))
			}
		}
	}
}

// TestNewestGone: where the newest lines go while they are counted, older ones are found.
func TestNewestGone(t *testing.T) {
	const second = int64(time.Second)
	end := logqltest.Begin + 24*3600*second
	old := logqltest.Stream{Labels: []string{"app", "web", "pod", "1"}}
	for i := range int64(50) {
		old.Lines = append(old.Lines, logqltest.Line{Time: end - 50*second + i*second/10, Text: fmt.Sprint("old ", i)})
	}
	added := logqltest.Stream{Labels: []string{"app", "web", "pod", "2"}}
	for i := range int64(5000) {
		added.Lines = append(added.Lines, logqltest.Line{Time: end - 3*second + i*1000, Text: fmt.Sprint("new ", i)})
	}
	for gone := 2; gone < 6; gone++ {
		server := &linesServer{Dataset: &logqltest.Dataset{Streams: []logqltest.Stream{old, added}}}
		server.before = func(asked int) {
			if asked >= gone {
				server.Streams = server.Streams[:1]
			}
		}
		at := httptest.NewServer(server)
		q := logqltest.Query{Text: `{app="web"}`, Start: logqltest.Begin, End: end, Limit: 100}
		got := logqltest.Run(context.Background(), logqltest.Over(source(t, at.URL, "7:1", 0, 0)), logqltest.Tenant, &q)
		at.Close()
		if gone > len(server.asked) {
			break
		}
		n := 0
		for _, s := range got.Series {
			n += len(s.Lines)
		}
		if got.Error == "" && n < 50 {
			t.Errorf("with lines that go before request %d of %d: %d lines and no error", gone, len(server.asked), n)
		}
	}
}

// widest notes the length of the longest range of which lines were selected.
type widest struct {
	*readtest.Memory
	mu   sync.Mutex
	most int64
}

func (w *widest) SelectText(ctx context.Context, req *model.Request) ([]model.TextCursor, error) {
	w.mu.Lock()
	w.most = max(w.most, req.Range.Max-req.Range.Min)
	w.mu.Unlock()
	return w.Memory.SelectText(ctx, req)
}

// TestNewestElsewhere: where Shale itself has lines, short ranges are read of both from the end on, however
// few VictoriaLogs has. So no data is opened that the result does not need.
func TestNewestElsewhere(t *testing.T) {
	server := &linesServer{Dataset: newestData(4, 5000, 1)}
	at := httptest.NewServer(server)
	defer at.Close()
	end := logqltest.Begin + 24*int64(time.Hour)
	own, all := &widest{Memory: readtest.NewMemory(1)}, readtest.NewMemory(1)
	add := func(m *readtest.Memory, labels []string, l logqltest.Line) {
		of := model.LabelsOf(labels...)
		m.AddText(logqltest.Tenant, of.Key(1, model.Logs), of, readtest.Line{Time: l.Time, Text: l.Text, Metadata: model.LabelsOf(l.Metadata...)})
	}
	for _, s := range server.Streams {
		for _, l := range s.Lines {
			add(all, s.Labels, l)
		}
	}
	theirs := logqltest.Over(own, source(t, at.URL, "7:1", 0, 0))
	for i := range 300 {
		l := logqltest.Line{Time: end - int64(500-i)*int64(500*time.Millisecond), Text: fmt.Sprint("own ", i)}
		for _, labels := range [][]string{{"app", "web", "pod", "2"}, {"app", "new", "pod", "1"}} {
			add(own.Memory, labels, l)
			add(all, labels, l)
		}
		if i%50 != 0 && i != 299 {
			continue
		}
		for _, text := range []string{`{app="web"}`, `{app="new"}`, `{app=~".+"} |= "n"`} {
			q := logqltest.Query{Text: text, Start: logqltest.Begin, End: end, Limit: min(60, i+1)}
			own.most = 0
			got, want := logqltest.Run(context.Background(), theirs, logqltest.Tenant, &q), logqltest.Run(context.Background(), logqltest.Over(all), logqltest.Tenant, &q)
			if diff := logqltest.Diff(want, got, false); diff != "" {
				t.Errorf("%s with %d lines of its own: %s", text, i+1, diff)
			}
			if most := time.Duration(own.most); most > time.Hour && text != `{app=~".+"} |= "n"` {
				t.Errorf("%s with %d lines of its own, the last one %s before the end: lines of %s are selected", text, i+1, time.Duration(end-l.Time), most)
			}
		}
	}
}

// TestNewestWithLittleMemory: what the newest lines are counted in may need more memory than a query may
// have. Then they are looked for in another way, and nothing stays charged.
func TestNewestWithLittleMemory(t *testing.T) {
	d := &logqltest.Dataset{}
	end := logqltest.Begin + int64(time.Hour)
	for i := range 2000 {
		d.Streams = append(d.Streams, logqltest.Stream{Labels: []string{"app", "web", "pod", fmt.Sprint(i)}, Lines: []logqltest.Line{{Time: end - int64(i)*int64(time.Second), Text: "a"}}})
	}
	server := &linesServer{Dataset: d}
	at := httptest.NewServer(server)
	defer at.Close()
	from := source(t, at.URL, "7:1", 0, 0)
	for _, most := range []int64{100 << 10, 100 << 20} {
		req := &model.Request{
			Tenant: logqltest.Tenant, Signal: model.Logs, Family: model.Text, Range: model.TimeRange{Min: logqltest.Begin, Max: end},
			Quota: &model.Quota{MaxBytes: most, Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: new(model.Cost),
		}
		ahead, _, err := from.Newest(context.Background(), req, 1000)
		if err != nil || (ahead == nil) != (most < 1<<20) {
			t.Errorf("with %d bytes: %v, %v", most, ahead, err)
		}
		if ahead != nil {
			ahead.Release()
		}
		if n := req.Quota.Charged().Bytes(); n != 0 {
			t.Errorf("with %d bytes: %d stay charged", most, n)
		}
	}
}

// TestNewestSpare: there are not many more lines fetched than wanted, however many there are in a second, and
// that takes three requests.
func TestNewestSpare(t *testing.T) {
	end := logqltest.Begin + int64(time.Hour)
	for _, perMinute := range []int{100, 1000, 10_000, 100_000, 600_000} {
		d, newest := &logqltest.Dataset{}, &logqltest.Dataset{}
		for _, pod := range []string{"1", "2", "3"} {
			s := logqltest.Stream{Labels: []string{"app", "web", "pod", pod}}
			for i := range max(1000, perMinute/2) / 3 {
				s.Lines = append(s.Lines, logqltest.Line{Time: end - int64(i)*3*int64(time.Minute)/int64(perMinute), Text: fmt.Sprint("line ", i)})
			}
			slices.Reverse(s.Lines)
			d.Streams = append(d.Streams, s)
			newest.Streams = append(newest.Streams, logqltest.Stream{Labels: s.Labels, Lines: s.Lines[max(0, len(s.Lines)-1000):]})
		}
		for _, limit := range []int{100, 900} {
			server := &linesServer{Dataset: d}
			at := httptest.NewServer(server)
			q := logqltest.Query{Text: `{app="web"}`, Start: logqltest.Begin, End: end, Limit: limit}
			got := logqltest.Run(context.Background(), logqltest.Over(source(t, at.URL, "7:1", 0, 0)), logqltest.Tenant, &q)
			at.Close()
			if diff := logqltest.Diff(logqltest.Run(context.Background(), logqltest.InMemory(newest), logqltest.Tenant, &q), got, false); diff != "" {
				t.Errorf("%d of %d a minute: %s", limit, perMinute, diff)
			}
			t.Logf("%d of %d a minute: %d requests, %d lines", limit, perMinute, len(server.asked), server.lines)
			if most := limit + max(limit, 500); server.lines > most || len(server.asked) > 3 {
				t.Errorf("%d of %d a minute: %d lines in %d requests, want %d in 3 at most", limit, perMinute, server.lines, len(server.asked), most)
			}
		}
	}
}

// TestNewestRetention: the time before which retention hides lines moves on while a query runs. Lines are
// counted once nevertheless, and those that are hidden by then are left out.
func TestNewestRetention(t *testing.T) {
	for _, lines := range []int{30, 400} {
		server := &linesServer{Dataset: newestData(8, lines, 1)}
		at := httptest.NewServer(server)
		defer at.Close()
		asked := 0
		for _, moves := range []time.Duration{0, time.Millisecond, time.Hour} {
			oldest := logqltest.Begin + int64(5*time.Hour)
			over := func(sources ...read.Source) *logql.Engine {
				return logql.New(logql.Options{Read: read.New(read.Options{Sources: sources, Horizon: func(string, model.Signal, int64) (int64, *model.Horizon) {
					if len(server.asked) > 0 {
						return oldest + int64(moves), nil
					}
					return oldest, nil
				}})})
			}
			q := logqltest.Query{Text: `{app="web"}`, Start: logqltest.Begin, End: logqltest.Begin + 24*int64(time.Hour), Limit: 1000}
			server.asked = nil
			got := logqltest.Run(context.Background(), over(source(t, at.URL, "7:1", 0, 0)), logqltest.Tenant, &q)
			if asked == 0 { // retention stands still
				asked = len(server.asked)
			}
			if len(server.asked) != asked {
				t.Errorf("%d lines, %s: %d requests, want %d: %s", lines, moves, len(server.asked), asked, strings.Join(server.asked, "\n"))
			}
			q.Start = oldest + int64(moves)
			if diff := logqltest.Diff(logqltest.Run(context.Background(), logqltest.InMemory(server.Dataset), logqltest.Tenant, &q), got, false); diff != "" || got.Empty() {
				t.Errorf("%d lines, %s: %s", lines, moves, diff)
			}
		}
	}
}
