package remote_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	upstream "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/api/peer"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/vector"
	"github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/read/remote"
	"github.com/shaledb/shale/internal/read/remote/wire"
	"github.com/shaledb/shale/internal/store/head"
)

const (
	seed = model.KeySeed(7)
	now  = int64(1_700_000_000 * time.Second)
)

// partition is a head that has shipped nothing.
type partition struct {
	node string
	head *head.Head
	seq  uint64
	from uint64 // 0: 1
}

func (p *partition) Journal() wire.Journal {
	return wire.Journal{Node: p.node, Epoch: 3, From: max(1, p.from), To: p.head.Applied(), Ready: true}
}

func (p *partition) Source(after uint64) read.Source { return p.head.SourceAfter(after, nil) }

func (p *partition) Await(ctx context.Context, seq uint64) error {
	return p.head.AwaitApplied(ctx, seq)
}

// fataler is a test, of any kind.
type fataler interface {
	Fatal(...any)
	Fatalf(string, ...any)
}

func openPartition(t fataler, node string) *partition {
	h, err := head.Open(context.Background(), head.Options{
		FS: vfs.NewMem(), Dir: "/head", Seed: seed, Node: node, KnownBytes: 4 << 20, RowBytes: 8 << 20, Now: func() int64 { return now },
		Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &partition{node: node, head: h}
}

func (p *partition) apply(b *model.Batch) {
	p.seq++
	p.head.Apply(p.seq, b)
}

// setup is heads in servers, and sources over them.
type setup struct {
	parts   []*partition
	servers []*httptest.Server
	options remote.Options
	far     *remote.Source
}

// newSetup opens two heads in each of two servers.
func newSetup(t fataler) *setup {
	s := new(setup)
	for i := range 2 {
		mine := []*partition{openPartition(t, fmt.Sprintf("p%d", 2*i)), openPartition(t, fmt.Sprintf("p%d", 2*i+1))}
		s.parts = append(s.parts, mine...)
		server := httptest.NewServer(peer.New(peer.Options{Partitions: func() []peer.Partition { return []peer.Partition{mine[0], mine[1]} }}))
		s.servers = append(s.servers, server)
		s.options.Peers = append(s.options.Peers, server.Listener.Addr().String())
	}
	s.far = remote.New(s.options)
	return s
}

func (s *setup) close() {
	s.far.Close()
	for _, x := range s.servers {
		x.Close()
	}
	for _, p := range s.parts {
		_ = p.head.Close()
	}
}

// near returns the heads themselves.
func (s *setup) near() (all []read.Source) {
	for _, p := range s.parts {
		all = append(all, p.head.Source(nil))
	}
	return all
}

// push applies a batch, divided among the heads by the keys of its series.
func (s *setup) push(b *worldtest.Batch) {
	of := make([]model.Batch, len(s.parts))
	for i := range b.Series {
		x := &b.Series[i]
		k := x.Labels.Key(seed, b.Signal)
		to := &of[k.Lo%uint64(len(of))]
		to.Tenant, to.Signal = b.Tenant, b.Signal
		to.Labels.Append(uint32(len(to.Keys)), x.Labels)
		for _, r := range x.Rows {
			r.AppendTo(&to.Columns(r.Family()).Rows)
		}
		to.EndSeries(k)
	}
	for i := range of {
		if len(of[i].Keys) > 0 {
			s.parts[i].apply(&of[i])
		}
	}
}

// fill pushes random batches of both signals, and flushes and merges between them.
func (s *setup) fill(t *rapid.T) {
	age := func() int64 { return now - rapid.Int64Range(0, int64(3*time.Hour)).Draw(t, "age")/1e6*1e6 }
	metrics := worldtest.Pushes{Tenants: []string{"a", "b"}, Labels: append(worldtest.NumberedLabels(40, 4), worldtest.OddLabels(model.Metrics)...), Series: 30, Rows: 3, Time: age}
	logs := worldtest.Pushes{Tenants: []string{"a", "b"}, Labels: append(worldtest.NumberedLabels(10, 3), worldtest.OddLabels(model.Logs)...), Series: 10, Rows: 8, Time: age}
	for range rapid.IntRange(1, 8).Draw(t, "batches") {
		r := worldtest.Drawn{T: t}
		s.push(metrics.Batch(r, model.Metrics))
		s.push(logs.Batch(r, model.Logs))
		p := s.parts[rapid.IntRange(0, len(s.parts)-1).Draw(t, "part")]
		switch rapid.IntRange(0, 3).Draw(t, "then") {
		case 0:
			if err := p.head.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
		case 1:
			if _, err := p.head.Work(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// drawRequest draws a request of any kind.
func drawRequest(t *rapid.T) *model.Request {
	req := &model.Request{
		Tenant: rapid.SampledFrom([]string{"a", "b", "nobody"}).Draw(t, "tenant"), Signal: rapid.SampledFrom([]model.Signal{model.Metrics, model.Logs}).Draw(t, "signal"),
		Range: model.Always(), LabelsOnly: rapid.IntRange(0, 4).Draw(t, "labels only") == 0,
	}
	if rapid.Bool().Draw(t, "cut") {
		req.Range.Min = now - rapid.Int64Range(0, int64(3*time.Hour)).Draw(t, "from")
		req.Range.Max = req.Range.Min + rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "length")
	}
	if req.Signal == model.Metrics && rapid.IntRange(0, 3).Draw(t, "exemplars") == 0 {
		req.Family = model.Exemplars
	}
	if req.Signal == model.Logs && rapid.Bool().Draw(t, "filtered") {
		req.TextFilter = &model.TextFilter{Clauses: []model.TextClause{{Any: []model.TextLiteral{{Value: rapid.SampledFrom([]string{"a", "error", "\xff", ""}).Draw(t, "literal")}}}}}
	}
	if req.Signal == model.Logs && rapid.IntRange(0, 3).Draw(t, "cells") == 0 {
		req.Cells = &model.TextCells{Step: int64(10 * time.Minute)}
	}
	text := rapid.SampledFrom([]string{`{}`, `{__name__=~".+"}`, `{i="1"}`, `{i!="1",__name__="m1"}`, `{i=~"[0-3]|"}`, `{i!~"1.*"}`, `{__name__=~"m1|m2"}`, "{__name__!=\"\\xff\"}"}).Draw(t, "matchers")
	if text != `{}` {
		ms, err := parser.NewParser(parser.Options{}).ParseMetricSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		req.Matchers = promql.Matchers(ms)
	}
	if rapid.IntRange(0, 3).Draw(t, "own matcher") == 0 { // a regular expression of another kind
		req.Matchers = append(req.Matchers, model.Matcher{
			Name: "i", Op: model.MatchRegexp, Value: "(?P<odd>", Match: func(v string) bool { return strings.HasSuffix(v, "1") },
		})
	}
	return req
}

// fresh returns a copy of a request with a quota of its own, and what it charges at the end.
func fresh(req *model.Request) *model.Request {
	r := *req
	r.Quota = &model.Quota{MaxBytes: 1 << 30, Pool: &model.QueryPool{MaxBytes: 1 << 30}}
	r.Cost = new(model.Cost)
	return &r
}

// dump returns everything that a request selects, as text.
func dump(q *read.Querier, of *model.Request) (string, error) {
	ctx := context.Background()
	var out strings.Builder
	req := fresh(of)
	set, err := q.Select(ctx, req)
	if err != nil {
		return "", err
	}
	for set.Next(ctx) {
		fmt.Fprintf(&out, "%s %s\n", set.Key(), set.Labels())
		if of.LabelsOnly {
			continue
		}
		var rows model.Rows
		if err := set.AppendRows(ctx, &rows); err != nil {
			return "", errors.Join(err, set.Close())
		}
		for i := range rows.Len() {
			fmt.Fprintf(&out, "\t%s\n", worldtest.RowAt(&rows, i))
		}
	}
	if err := errors.Join(set.Err(), set.Close()); err != nil {
		return "", err
	}
	if of.Signal == model.Logs {
		if err := dumpText(ctx, &out, q, fresh(of)); err != nil {
			return "", err
		}
	}
	names, _, err := q.LabelNames(ctx, fresh(of), 0)
	if err != nil {
		return "", err
	}
	fmt.Fprintln(&out, names)
	for _, name := range append(names, "none") {
		values, _, err := q.LabelValues(ctx, fresh(of), name, 0)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%s %q\n", name, values)
	}
	if of.Signal == model.Metrics {
		r := fresh(of)
		r.Matchers = nil
		sets, release, err := q.Names(ctx, r)
		if err != nil {
			return "", err
		}
		var all []string
		for _, s := range sets {
			if err := s.Each(ctx, func(n []byte) error { all = append(all, string(n)); return nil }); err != nil {
				return "", err
			}
		}
		release()
		slices.Sort(all)
		fmt.Fprintln(&out, slices.Compact(all))
	}
	return out.String(), nil
}

func dumpText(ctx context.Context, all *strings.Builder, q *read.Querier, req *model.Request) error {
	set, err := q.SelectText(ctx, req)
	if err != nil {
		return err
	}
	var chunks []model.TextChunk
	for set.Next(ctx) {
		if chunks, err = set.Chunks(ctx, chunks[:0]); err != nil {
			return errors.Join(err, set.Close())
		}
		var out strings.Builder
		wanted := false
		fmt.Fprintf(&out, "%s %s\n", set.Key(), set.Labels())
		for _, c := range chunks {
			skip, err := c.Page.Skip(ctx)
			if err != nil {
				return errors.Join(err, set.Close())
			}
			wanted = wanted || !skip
			fmt.Fprintf(&out, "\t%v %d %d %d %v\n", c.TimeRange, c.Rows, c.Bytes, c.Order, skip)
			for _, want := range []model.TextWant{0, model.WantLengths, model.WantMetadata, model.WantLines, model.WantLines | model.WantMetadata} {
				var rows model.TextRows
				if err := c.Page.ReadText(ctx, c.Index, want, &rows); err != nil {
					return errors.Join(err, set.Close())
				}
				for i, at := range rows.Times {
					fmt.Fprintf(&out, "\t\t%d", at)
					switch {
					case want&model.WantLines != 0:
						fmt.Fprintf(&out, " %q", rows.Line(i))
					case want&model.WantLengths != 0:
						begin := rows.Begin
						if i > 0 {
							begin = rows.Ends[i-1]
						}
						fmt.Fprintf(&out, " %d", rows.Ends[i]-begin)
					default:
						fmt.Fprintf(&out, " %d", len(rows.Ends))
					}
					if want&model.WantMetadata != 0 {
						fmt.Fprintf(&out, " %s", rows.MetadataAt(i))
					}
					fmt.Fprintln(&out)
				}
			}
			c.Page.Release()
		}
		if wanted { // a head may leave a stream out of which no line satisfies the filter
			all.WriteString(out.String())
		}
	}
	if err := errors.Join(set.Err(), set.Close()); err != nil {
		return err
	}
	if slices.ContainsFunc(req.Matchers, func(m model.Matcher) bool { return m.Op == model.MatchRegexp && !m.Standard }) {
		return nil // holders look at more than they must
	}
	fmt.Fprintln(all, req.Cost.TextPages.Load(), req.Cost.TextPagesSkipped.Load(), req.Cost.HeadParts.Load(), req.Cost.HeadBuffers.Load())
	return nil
}

// TestSources asks heads themselves, and through servers, for the same: every row, label, name, chunk and
// line must be equal, bit for bit.
func TestSources(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSetup(t)
		defer s.close()
		s.fill(t)
		near, far := read.New(read.Options{Sources: s.near()}), read.New(read.Options{Sources: []read.Source{s.far}})
		for range 6 {
			req := drawRequest(t)
			want, err := dump(near, req)
			if err != nil {
				t.Fatal(err)
			}
			got, err := dump(far, req)
			if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Fatalf("request %+v: %s", req, firstDifference(got, want))
			}
		}
	})
}

// firstDifference returns the first lines in which two texts differ.
func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d: got %q, want %q", i, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(a), len(b))
}

// TestEngines asks both languages over heads themselves, and through servers.
func TestEngines(t *testing.T) {
	up := upstream.NewEngine(upstream.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{})})
	defer up.Close()
	engine := &promql.Engine{Upstream: up, SubqueryStep: time.Minute}
	rapid.Check(t, func(t *rapid.T) {
		s := newSetup(t)
		defer s.close()
		s.fill(t)
		near, far := read.New(read.Options{Sources: s.near()}), read.New(read.Options{Sources: []read.Source{s.far}})
		for _, text := range []string{`{i=~".+"}`, `sum by (__name__) (count_over_time({__name__=~".+"}[30m]))`, `max_over_time({i="1"}[1h])`, `count({i!=""})`} {
			if a, b := askMetrics(t, engine, near, text), askMetrics(t, engine, far, text); a != b {
				t.Fatalf("%s\ngot\n%s\nwant\n%s", text, b, a)
			}
		}
		for _, text := range []string{`{i=~".+"}`, `{i=~".+"} |= "a"`, `{__name__=~"m1|m2"} != "a"`} {
			limit := rapid.SampledFrom([]int{0, 1, 7}).Draw(t, "limit")
			direction := logql.Direction(rapid.IntRange(0, 1).Draw(t, "direction"))
			if a, b := askLines(t, near, text, limit, direction), askLines(t, far, text, limit, direction); a != b {
				t.Fatalf("%s\ngot\n%s\nwant\n%s", text, b, a)
			}
		}
		for _, text := range []string{`sum by (i) (count_over_time({i=~".+"}[20m]))`, `bytes_over_time({i=~".+"} |= "a" [1h])`, `rate({__name__="m1"}[5m])`} {
			if a, b := askNumbers(t, near, text), askNumbers(t, far, text); a != b {
				t.Fatalf("%s\ngot\n%s\nwant\n%s", text, b, a)
			}
		}
	})
}

func askMetrics(t *rapid.T, e *promql.Engine, q *read.Querier, text string) string {
	store := &promql.Queryable{Read: q, Tenant: "a", Quota: new(model.Quota), Cost: new(model.Cost)}
	query, err := e.NewRangeQuery(context.Background(), store, nil, text, time.Unix(0, now-int64(3*time.Hour)), time.Unix(0, now), 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	r := query.Exec(context.Background())
	if r.Err != nil {
		return r.Err.Error() // such as two series with the same labels
	}
	return fmt.Sprint(r.Value, r.Warnings)
}

func prepare(t *rapid.T, text string) *logql.Prepared {
	p, err := logql.Prepare(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func askLines(t *rapid.T, q *read.Querier, text string, limit int, d logql.Direction) string {
	e := logql.New(logql.Options{Read: q})
	got, err := e.Lines(context.Background(), &logql.Query{
		Tenants: []string{"a"}, Prepared: prepare(t, text), Start: math.MinInt64, End: math.MaxInt64, Limit: limit, Direction: d, Categorize: true,
		Quota: new(model.Quota), Cost: new(model.Cost),
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%+v", got.Streams)
}

func askNumbers(t *rapid.T, q *read.Querier, text string) string {
	e := logql.New(logql.Options{Read: q})
	got, err := e.Numbers(context.Background(), &logql.MetricQuery{
		Tenants: []string{"a"}, Prepared: prepare(t, text), Steps: vector.Steps{Start: now - int64(3*time.Hour), Step: int64(10 * time.Minute), Count: 19},
		Quota: new(model.Quota), Cost: new(model.Cost),
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%+v", got.Matrix)
}
