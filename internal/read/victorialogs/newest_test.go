package victorialogs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/logqltest"
	"github.com/shaledb/shale/internal/read/readtest"
	"github.com/shaledb/shale/internal/read/victorialogs/victorialogstest"
)

// linesServer has lines, and answers as VictoriaLogs does what counts or selects them.
type linesServer struct {
	*logqltest.Dataset
	asked []string
}

var (
	linesWithin = regexp.MustCompile(`_time:\[([^,]+),([^\]]+)\]`)
	linesOf     = regexp.MustCompile(`\{"app"="(\w+)"\}`)
	linesStep   = regexp.MustCompile(`_time:(\d+)ns`)
)

func (s *linesServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.FormValue("query")
	s.asked = append(s.asked, query)
	ends := linesWithin.FindStringSubmatch(query)
	from, _ := time.Parse(time.RFC3339Nano, ends[1])
	to, _ := time.Parse(time.RFC3339Nano, ends[2])
	type line struct {
		logqltest.Line
		stream string
	}
	var all []line
	for _, x := range s.Streams {
		if app := linesOf.FindStringSubmatch(query); app != nil && app[1] != x.Labels[1] {
			continue
		}
		for _, l := range x.Lines {
			if l.Time >= from.UnixNano() && l.Time <= to.UnixNano() {
				all = append(all, line{l, fmt.Sprintf("{%s=%q,%s=%q}", x.Labels[0], x.Labels[1], x.Labels[2], x.Labels[3])})
			}
		}
	}
	write := func(row map[string]string) {
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

// TestNewest: the newest lines of a stream take a request that counts, and one for the lines. They are the
// right ones where many lines have one time, where some are there twice, and where there are too few.
func TestNewest(t *testing.T) {
	const second = int64(time.Second)
	for _, test := range []struct {
		name      string
		lines     int
		precision int64
		limit     int
		most      int // requests
	}{
		{"of many", 5000, 1, 100, 2},
		{"of as many as one minute has", 20_000, 1, 20, 2},
		{"of those of some hours", 100, 1, 100, 4},
		{"of few", 30, 1, 100, 4},
		{"of none", 0, 1, 100, 4},
		{"of whole seconds", 5000, second, 100, 2},
		{"of whole hours", 5000, 3600 * second, 100, 3},
		{"of one time", 5000, 86400 * second, 100, 5},
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
			}
		})
	}
}

// TestNewestElsewhere: where Shale itself has lines at the end of the range, a short range is read of both.
func TestNewestElsewhere(t *testing.T) {
	server := &linesServer{Dataset: newestData(4, 5000, 1)}
	at := httptest.NewServer(server)
	defer at.Close()
	end := logqltest.Begin + 24*int64(time.Hour)
	own, all := readtest.NewMemory(1), readtest.NewMemory(1)
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
		l := logqltest.Line{Time: end - int64(300-i)*int64(500*time.Millisecond), Text: fmt.Sprint("own ", i)}
		for _, m := range []*readtest.Memory{own, all} {
			add(m, []string{"app", "web", "pod", "2"}, l)
		}
		if i%50 != 0 && i != 299 {
			continue
		}
		server.asked = nil
		q := logqltest.Query{Text: `{app="web"}`, Start: logqltest.Begin, End: end, Limit: 60}
		got, want := logqltest.Run(context.Background(), theirs, logqltest.Tenant, &q), logqltest.Run(context.Background(), logqltest.Over(all), logqltest.Tenant, &q)
		if diff := logqltest.Diff(want, got, false); diff != "" {
			t.Errorf("with %d lines of its own: %s", i+1, diff)
		}
		newest := strings.Contains(server.asked[0], "_time:226000000000ns") // a sixteenth of an hour
		if within := l.Time >= end-int64(time.Minute); newest == within {
			t.Errorf("with %d lines of its own, the last one in the last minute: %v, lines are counted from the end on: %v", i+1, within, newest)
		}
	}
}
