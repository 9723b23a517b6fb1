package logql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql/vector"
	"github.com/shaledb/shale/internal/read/readtest"
)

var allTime = model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64 - 1}

// shop is a small world of three tenants.
func shop() (*readtest.Memory, *Engine) {
	m := readtest.NewMemory(1)
	add := func(tenant string, l model.Labels, lines ...readtest.Line) {
		m.AddText(tenant, l.Key(1, model.Logs), l, lines...)
	}
	add("a", model.LabelsOf("app", "web", "zone", "1"),
		readtest.Line{Time: 10, Text: "GET /", Metadata: model.LabelsOf("trace", "t1")},
		readtest.Line{Time: 20, Text: "GET /cart"},
		readtest.Line{Time: 30, Text: "POST /cart", Metadata: model.LabelsOf("trace", "t2", "zone", "x")})
	add("a", model.LabelsOf("app", "db"), readtest.Line{Time: 20, Text: "slow query"})
	add("b", model.LabelsOf("app", "web", TenantLabel, "mine"), readtest.Line{Time: 25, Text: "GET /b"})
	add("c", model.LabelsOf("app", "web"), readtest.Line{Time: 40, Text: "GET /c"})
	return m, New(Options{Read: read.New(read.Options{Sources: []read.Source{m}})})
}

// prepared prepares a query that is right.
func prepared(text string) *Prepared {
	p, err := Prepare(text)
	if err != nil {
		panic(err)
	}
	return p
}

func table(l *Lines) string {
	var sb strings.Builder
	for _, s := range l.Streams {
		fmt.Fprintln(&sb, s.Labels)
		for _, e := range s.Entries {
			fmt.Fprintf(&sb, "  %d %s %s %s\n", e.Time, e.Line, e.Metadata, e.Parsed)
		}
	}
	return sb.String()
}

func TestStreamsOfAnAnswer(t *testing.T) {
	_, e := shop()
	for _, c := range []struct {
		name string
		q    Query
		want string
	}{
		{"backward", Query{Tenants: []string{"a"}, Prepared: prepared(`{app=~".+"}`), Start: 10, End: 30}, `
{app="db"}
  20 slow query {} {}
{app="web", trace="t1", zone="1"}
  10 GET / {trace="t1"} {}
{app="web", zone="1"}
  20 GET /cart {} {}
`},
		{"categorized, forward", Query{Tenants: []string{"a"}, Prepared: prepared(`{app="web"}`), End: 100, Direction: Forward, Categorize: true}, `
{app="web", zone="1"}
  10 GET / {trace="t1"} {}
  20 GET /cart {} {}
  30 POST /cart {trace="t2", zone_extracted="x"} {}
`},
		{"limited", Query{Tenants: []string{"a"}, Prepared: prepared(`{app="web"}`), End: 100, Limit: 1}, `
{app="web", trace="t2", zone="1", zone_extracted="x"}
  30 POST /cart {trace="t2", zone_extracted="x"} {}
`},
		{"thinned", Query{Tenants: []string{"a"}, Prepared: prepared(`{app=~".+"}`), End: 100, Interval: 10, Limit: 2, Categorize: true}, `
{app="web", zone="1"}
  30 POST /cart {trace="t2", zone_extracted="x"} {}
  20 GET /cart {} {}
`},
		{"tenants", Query{Tenants: []string{"a", "b", "c"}, Prepared: prepared(`{app="web"}`), Start: 20, End: 100}, `
{__tenant_id__="a", app="web", trace="t2", zone="1", zone_extracted="x"}
  30 POST /cart {trace="t2", zone_extracted="x"} {}
{__tenant_id__="a", app="web", zone="1"}
  20 GET /cart {} {}
{__tenant_id__="b", app="web", original___tenant_id__="mine"}
  25 GET /b {} {}
{__tenant_id__="c", app="web"}
  40 GET /c {} {}
`},
		{"some tenants", Query{Tenants: []string{"a", "b", "c"}, Prepared: prepared(`{app="web", __tenant_id__=~"b|c", original___tenant_id__=""}`), End: 100}, `
{__tenant_id__="c", app="web"}
  40 GET /c {} {}
`},
		{"one tenant with a label of that name", Query{Tenants: []string{"b"}, Prepared: prepared(`{__tenant_id__="mine"}`), End: 100}, `
{__tenant_id__="mine", app="web"}
  25 GET /b {} {}
`},
		{"an empty range", Query{Tenants: []string{"a"}, Prepared: prepared(`{app=~".+"}`), Start: 30, End: 30}, "\n"},
	} {
		got, err := e.Lines(context.Background(), &c.q)
		if err != nil {
			t.Fatal(c.name, err)
		}
		if d := cmp.Diff(c.want, "\n"+table(got)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if entries := strings.Count(table(got), "  "); int(got.Stats.Entries) != entries && c.name != "an empty range" {
			t.Errorf("%s: %+v", c.name, got.Stats)
		}
	}
}

func TestLabelsOfStreams(t *testing.T) {
	_, e := shop()
	ctx := context.Background()
	one, all := []string{"a"}, []string{"a", "b", "c"}
	list := func(got []string, err error) string {
		if err != nil {
			return err.Error()
		}
		return strings.Join(got, " ")
	}
	series := func(got []model.Labels, err error) string {
		var out []string
		for _, l := range got {
			out = append(out, l.String())
		}
		return list(out, err)
	}
	sel := func(tenants []string, selectors ...string) *Selection {
		var parsed []Selector
		for _, text := range selectors {
			s, err := ParseSelector(text)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, s)
		}
		return &Selection{Tenants: tenants, Selectors: parsed, Range: allTime, Quota: &model.Quota{}, Cost: &model.Cost{}}
	}
	late := sel(one)
	late.Range.Min = 25
	for i, c := range []struct{ got, want string }{
		{list(e.LabelNames(ctx, sel(one))), "app zone"},
		{list(e.LabelNames(ctx, sel(one, `{app="db"}`))), "app"},
		{list(e.LabelNames(ctx, sel([]string{"none"}))), ""},
		{list(e.LabelNames(ctx, sel(all))), "__tenant_id__ app zone"},
		{list(e.LabelValues(ctx, sel(one), "app")), "db web"},
		{list(e.LabelValues(ctx, late, "app")), "web"},
		{list(e.LabelValues(ctx, sel(all), "__tenant_id__")), "a b c"},
		{list(e.LabelValues(ctx, sel(all), "original___tenant_id__")), ""},
		{list(e.LabelValues(ctx, sel(all, `{__tenant_id__="a"}`), "app")), "db web"},
		{series(e.Series(ctx, sel(one, `{app="db"}`, `{app=~".+"}`))), `{app="db"} {app="web", zone="1"}`},
		{series(e.Series(ctx, sel(one))), `{app="db"} {app="web", zone="1"}`},
		{series(e.Series(ctx, sel(all, `{app="web", __tenant_id__!="a"}`))), `{__tenant_id__="b", app="web", original___tenant_id__="mine"} {__tenant_id__="c", app="web"}`},
	} {
		if c.got != c.want && !strings.HasPrefix(c.got, c.want+",") {
			t.Errorf("%d: got %q, want %q", i, c.got, c.want)
		}
	}
}

// TestTies: the lines of the last time are all there, whatever the limit.
func TestTies(t *testing.T) {
	m := readtest.NewMemory(1)
	add := func(zone string, n int, times ...int64) {
		l := model.LabelsOf("app", "web", "zone", zone)
		for _, at := range times {
			for i := range n {
				m.AddText("a", l.Key(1, model.Logs), l, readtest.Line{Time: at, Text: fmt.Sprint("line ", i)})
			}
		}
	}
	add("1", 1, 10, 20, 40)
	add("2", 50, 20, 30)
	add("3", 3, 30)
	e := New(Options{Read: read.New(read.Options{Sources: []read.Source{m}})})
	for _, c := range []struct {
		query     string
		direction Direction
		limit     int
		ties      int
		interval  int64
		want      string
	}{
		{`{app="web"}`, Forward, 2, 10, 0, "10:1 20:9"},
		{`{app="web"}`, Forward, 2, 2, 0, "10:1 20:1"},
		{`{app="web"}`, Backward, 1, 10, 0, "40:1"},
		{`{app="web"}`, Forward, 1, math.MaxInt, 0, "10:1"},
		{`{app="web"}`, Forward, 2, math.MaxInt, 0, "10:1 20:51"},
		{`{app="web"}`, Forward, 52, math.MaxInt, 0, "10:1 20:51"},
		{`{app="web"}`, Forward, 53, math.MaxInt, 0, "10:1 20:51 30:53"},
		{`{app="web"}`, Forward, 1000, math.MaxInt, 0, "10:1 20:51 30:53 40:1"},
		{`{app="web"}`, Forward, 0, math.MaxInt, 0, "10:1 20:51 30:53 40:1"},
		{`{app="web"}`, Backward, 2, math.MaxInt, 0, "30:53 40:1"},
		{`{app="web"} |= "line 2"`, Forward, 1, math.MaxInt, 0, "20:11"},
		{`{app="web"} |= "line 2"`, Backward, 1, math.MaxInt, 0, "30:12"},
		{`{app="web"} |= "line 49"`, Backward, 1, math.MaxInt, 0, "30:1"},
		{`{app="web"}`, Forward, 2, math.MaxInt, 5, "10:1 20:1"},
	} {
		quota := &model.Quota{MaxBytes: 1 << 20}
		got, err := e.Lines(context.Background(), &Query{
			Tenants: []string{"a"}, Prepared: prepared(c.query), Start: 0, End: 100, Limit: c.limit, Ties: c.ties, Direction: c.direction, Interval: c.interval, Quota: quota,
		})
		if err != nil {
			t.Fatal(err)
		}
		count := map[int64]int{}
		total := 0
		for _, s := range got.Streams {
			for _, e := range s.Entries {
				count[e.Time]++
				total++
			}
		}
		var text []string
		for _, at := range slices.Sorted(maps.Keys(count)) {
			text = append(text, fmt.Sprintf("%d:%d", at, count[at]))
		}
		if strings.Join(text, " ") != c.want || int(got.Stats.Entries) != total {
			t.Errorf("%s %s %d: %s, want %s; %d entries", c.query, c.direction, c.limit, text, c.want, got.Stats.Entries)
		}
	}
}

func TestRefused(t *testing.T) {
	_, e := shop()
	for _, c := range []struct{ text, want string }{
		{`rate({app="web"}[1m])`, "only log selector is supported"},
		{`{app=~".*"}`, "parse error : queries require at least one regexp or equality matcher that does not have an empty-compatible value. For instance, app=~\".*\" does not meet this requirement, but app=~\".+\" will"},
		{`{app="web"} |~ "("`, ""},
	} {
		p, err := Prepare(c.text)
		if err == nil {
			_, err = e.Lines(t.Context(), &Query{Tenants: []string{"a"}, Prepared: p, End: 100})
		}
		if !errors.Is(err, model.ErrInvalid) || c.want != "" && err.Error() != c.want {
			t.Errorf("%s: %v", c.text, err)
		}
	}
	if _, err := PrepareInstant(`{app="web"}`); !errors.Is(err, ErrInstant) {
		t.Error(err)
	}
	if _, err := PrepareInstant(`{app="web"} | line_format "{{"`); !errors.Is(err, ErrInstant) {
		t.Error("stages that cannot be compiled:", err)
	}
	if p, err := PrepareInstant(`vector(1)`); err != nil || p.WantsLines() {
		t.Error(p, err)
	}
	if p, err := Prepare(`{app="web"}`); err != nil || !p.WantsLines() {
		t.Error(p, err)
	}
	if _, err := ParseSelector(`{`); err == nil || !strings.HasPrefix(err.Error(), "parse error at line 1, col 2: syntax error: unexpected $end") {
		t.Error(err)
	}
	if _, err := ParseSelector(`{}`); err == nil {
		t.Error("an empty selector is taken")
	}
	with, err := PrepareMatching(`{app="web"} |= "a"`, "b.\"`c")
	if want := "{app=\"web\"} |= \"a\" |~ \"b.\\\"`c\""; err != nil || with.String() != want {
		t.Error(with, err)
	}
	if _, err := PrepareMatching(`{app="web"}`, "("); !errors.Is(err, model.ErrInvalid) {
		t.Error(err)
	}
	if _, err := PrepareMatching(`rate({app="web"}[1m])`, "x"); !errors.Is(err, ErrMetric) {
		t.Error(err)
	}
}

// TestFailures: an error of a source is that of the query, and leaves nothing open or charged.
func TestFailures(t *testing.T) {
	boom := fmt.Errorf("%w: boom", model.ErrTransient)
	for name, f := range map[string]readtest.Failure{
		"select": {Select: boom}, "next": {Next: boom}, "chunks": {Rows: boom}, "read": {Text: boom}, "labels": {Labels: boom},
	} {
		m, e := shop()
		m.Fail(f)
		pool := &model.QueryPool{MaxBytes: 1 << 20}
		q := &Query{Tenants: []string{"a"}, Prepared: prepared(`{app=~".+"}`), End: 100, Limit: 10, Quota: &model.Quota{Pool: pool}, Cost: &model.Cost{}}
		if _, err := e.Lines(context.Background(), q); (name != "labels") != errors.Is(err, model.ErrTransient) {
			t.Errorf("%s: %v", name, err)
		}
		s := &Selection{Tenants: []string{"a"}, Range: allTime, Quota: q.Quota, Cost: q.Cost}
		if _, err := e.LabelNames(context.Background(), s); (name == "labels") != errors.Is(err, model.ErrTransient) {
			t.Errorf("%s: %v", name, err)
		}
		if m.Open() != 0 {
			t.Errorf("%s: a cursor is open", name)
		}
		q.Quota.Release()
		if pool.Used() != 0 {
			t.Errorf("%s: %d bytes are charged", name, pool.Used())
		}
	}
}

// TestQuota: a query that needs more than it may have is refused, with the setting's name, and one that is
// cancelled ends.
func TestQuota(t *testing.T) {
	m := readtest.NewMemory(1)
	m.SetTextPage(100, 1)
	l := model.LabelsOf("app", "x")
	var lines []readtest.Line
	for i := range 2000 {
		lines = append(lines, readtest.Line{Time: int64(i), Text: strings.Repeat("x", 1000)})
	}
	m.AddText("t", l.Key(1, model.Logs), l, lines...)
	e := New(Options{Read: read.New(read.Options{Sources: []read.Source{m}})})
	for _, limit := range []int64{300, 30_000, 1 << 20} {
		q := &Query{Tenants: []string{"t"}, Prepared: prepared(`{app="x"}`), End: 1 << 40, Quota: &model.Quota{MaxBytes: limit}}
		if _, err := e.Lines(context.Background(), q); !errors.Is(err, model.ErrLimit) || !strings.Contains(err.Error(), "query.max-bytes") {
			t.Errorf("%d: %v", limit, err)
		}
		// The newest lines fit.
		q = &Query{Tenants: []string{"t"}, Prepared: prepared(`{app="x"}`), End: 1 << 40, Limit: 5, Quota: &model.Quota{MaxBytes: limit}}
		if got, err := e.Lines(context.Background(), q); limit == 1<<20 && (err != nil || got.Stats.Entries != 5) {
			t.Errorf("%d: %v", limit, err)
		}
	}
	q := &Query{Tenants: []string{"t"}, Prepared: prepared(`{app="x"}`), End: 1 << 40, Quota: &model.Quota{MaxSeries: 1}}
	if _, err := e.Lines(context.Background(), q); err != nil {
		t.Error("one stream in several slices", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.Lines(ctx, q); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if m.Open() != 0 {
		t.Error("a cursor is open")
	}
}

// TestFigures: the statement of cost and the figures of the query tell the same lines, those whose text was
// looked at.
func TestFigures(t *testing.T) {
	m := readtest.NewMemory(1)
	m.SetTextPage(100, 1)
	l := model.LabelsOf("app", "x")
	var lines []readtest.Line
	for i := range 1000 {
		lines = append(lines, readtest.Line{Time: int64(i), Text: fmt.Sprint("line ", 1000+i), Metadata: model.LabelsOf("id", fmt.Sprint(1000+i))})
	}
	m.AddText("t", l.Key(1, model.Logs), l, lines...)
	e := New(Options{Read: read.New(read.Options{Sources: []read.Source{m}})})
	for text, metadata := range map[string]func(lines int64) int64{ // 6 bytes a line that passes the filter
		`{app="x"}`:             func(lines int64) int64 { return 6 * lines },
		`{app="x"} |= "199"`:    func(int64) int64 { return 6 * 11 },
		`{app="x"} | id="1000"`: func(lines int64) int64 { return 6 * lines },
		`{app="x"} != "line"`:   func(int64) int64 { return 0 },
	} {
		q := &Query{Tenants: []string{"t"}, Prepared: prepared(text), Start: 0, End: 1000, Limit: 5000, Cost: &model.Cost{}}
		got, err := e.Lines(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		s, lines := got.Stats, q.Cost.TextLines.Load()
		if s.Lines != lines || s.Bytes != 9*lines || q.Cost.TextBytes.Load() != s.Bytes || s.MetadataBytes != metadata(lines) {
			t.Errorf("%s: %+v, cost %d %d", text, s, lines, q.Cost.TextBytes.Load())
		}
	}
	// Of pages of which only times are read no line counts.
	q := &Query{Tenants: []string{"t"}, Prepared: prepared(`{app="x"}`), Start: 0, End: 1000, Limit: 3, Cost: &model.Cost{}}
	if got, err := e.Lines(t.Context(), q); err != nil || got.Stats.Lines != q.Cost.TextLines.Load() || got.Stats.Lines > 512 {
		t.Error(err, got.Stats.Lines, q.Cost.TextLines.Load())
	}
}

// TestMaxRange: the range that a query asks for counts, even if its lines are found at once.
func TestMaxRange(t *testing.T) {
	const hour = int64(time.Hour)
	s := newStore()
	s.push("t", model.LabelsOf("app", "x"), readtest.Line{Time: 100*hour - 1, Text: "x"})
	e := s.engine()
	quota := func() *model.Quota { return &model.Quota{MaxRange: 10 * time.Hour, Tenant: "team-a"} }
	for hours, refused := range map[int64]bool{10: false, 11: true} {
		_, lines := e.Lines(context.Background(), &Query{
			Tenants: []string{"t"}, Prepared: prepared(`{app="x"}`), Start: (100 - hours) * hour, End: 100 * hour, Direction: Backward, Limit: 1, Quota: quota(),
		})
		_, numbers := e.Numbers(context.Background(), &MetricQuery{
			Tenants: []string{"t"}, Prepared: prepared(fmt.Sprintf(`count_over_time({app="x"}[%dh])`, hours)), Steps: vector.Steps{Start: 100 * hour, Step: 1, Count: 1}, Quota: quota(),
		})
		_, volumes := e.VolumeBy(context.Background(), &VolumeQuery{
			Selection: Selection{Tenants: []string{"t"}, Range: model.TimeRange{Min: (100 - hours) * hour, Max: 100 * hour}, Quota: quota(), Cost: new(model.Cost)}, Limit: 10,
		})
		for what, err := range map[string]error{"lines": lines, "numbers": numbers, "volumes": volumes} {
			if errors.Is(err, model.ErrLimit) != refused {
				t.Errorf("%s of %d hours: %v", what, hours, err)
			}
		}
	}
	if _, err := e.Numbers(context.Background(), &MetricQuery{
		Tenants: []string{"t"}, Prepared: prepared(`vector(1)`), Steps: vector.Steps{Start: 0, Step: hour, Count: 20}, Quota: quota(),
	}); err != nil {
		t.Errorf("vector(1) reads nothing: %v", err)
	}
}
