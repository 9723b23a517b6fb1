package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/read/readtest"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/retention"
)

// era is a time during which rules held, up to the last moment that a row could be dropped by them.
type era struct {
	rules *retention.Rules
	until int64
}

// randomRules draws rules over the labels of the worlds, or none.
func randomRules(r *rand.Rand) *retention.Rules {
	keeps := []string{"2h", "12h", "30h", "3d", "0"}
	var l retention.List
	for range r.IntN(5) {
		rule := retention.Rule{Keep: keeps[r.IntN(len(keeps))]}
		if r.IntN(2) == 0 {
			rule.Tenant = []string{"t0", "t[12]", "t*"}[r.IntN(3)]
		}
		if r.IntN(2) == 0 {
			rule.Signal = []string{"metrics", "logs"}[r.IntN(2)]
		}
		if r.IntN(4) > 0 {
			rule.Match = []string{`m1`, `{__name__=~"m[23]"}`, `{i!="0"}`, `{__name__="m0", i=~"4|8|12"}`}[r.IntN(4)]
		}
		l.Rules = append(l.Rules, rule)
	}
	rules, err := retention.Compile(l, []time.Duration{0, 0, 20 * time.Hour, 96 * time.Hour}[r.IntN(4)])
	if err != nil {
		panic(err)
	}
	return rules
}

// horizons returns the time before which rows of a series are hidden now, and the one before which they have
// been hidden at any time, so that they may be gone.
func (h *history) horizons(id worldtest.ID) (now, ever int64) {
	now, ever = math.MinInt64, math.MinInt64
	for _, x := range h.eras {
		p := x.rules.Policy(id.Tenant, id.Signal)
		now = retention.Before(x.until, p.Keep(model.Labels(id.Labels)))
		ever = max(ever, now)
	}
	return now, ever
}

// passed notes that rules have held until now.
func (h *history) passed(rules *retention.Rules, now int64) {
	if n := len(h.eras); n > 0 && h.eras[n-1].rules == rules {
		h.eras[n-1].until = now
		return
	}
	h.eras = append(h.eras, era{rules, now})
}

// check compares what an engine returns with the history: rows that never expired must be there, those that
// are expired must not, and those that were for a time may.
func (h *history) check(e *Engine, q question) error {
	h.passed(e.o.Retention, e.now())
	got, err := ask(e, q)
	if err != nil {
		return err
	}
	for id, rows := range got {
		now, ever := h.horizons(id)
		for _, x := range rows {
			if x.At < now {
				return fmt.Errorf("%+v: %s of %s has expired and is shown", q, x, id)
			}
			if x.At < ever && !h.holds(id, x) {
				return fmt.Errorf("%+v: %s of %s was never written, or is deleted", q, x, id)
			}
		}
	}
	kept := func(id worldtest.ID, x worldtest.Row) bool {
		_, ever := h.horizons(id)
		return x.At >= ever
	}
	if d := q.result(h.content()).Where(kept).Diff(got.Where(kept)); d != "" {
		return fmt.Errorf("%+v:\n%s", q, d)
	}
	return nil
}

// Retention of tenants counts from one moment on, without a restart, also for what was kept of responses.
func TestRetentionOfTenants(t *testing.T) {
	c := config.Default()
	c.TenantsFile = filepath.Join(t.TempDir(), "tenants.yaml")
	put := func(text string) { t.Helper(); must(t, os.WriteFile(c.TenantsFile, []byte(text), 0o600)) }
	put("defaults: {retention: 1d}")
	book, err := openTenants(t.Context(), &c, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	must(t, err)
	book.close()
	s := newSetup(t, func(o *EngineOptions) { o.Tenants = book })
	for _, tenant := range []string{"a", "b"} {
		must(t, s.push(tenant, up, s.now-int64(2*time.Hour), 1))
		must(t, s.pushLines(tenant, app, s.now, "line"))
	}
	must(t, s.Ship())
	s.want(t, "a", "1")
	put("tenants: {a: {retention: 1h, retention-rules: [{match: up, keep: 90m}]}, b: {retention: 0}}")
	must(t, book.load())
	s.want(t, "a", "")
	s.want(t, "b", "1")
	if a, b, c := s.linesKept("a"), s.linesKept("b"), s.linesKept("c"); a != time.Hour || b != 0 || c != 30*24*time.Hour {
		t.Errorf("lines are kept for %s, %s, %s", a, b, c)
	}
	put("tenants: {a: {retention-rules: [{match: up, keep: 3h}]}}")
	must(t, book.load())
	s.want(t, "a", "1")
	must(t, s.Close())
}

// checkAll asks for everything.
func (h *history) checkAll(e *Engine) error {
	for _, f := range model.Families() {
		for tenant := range 3 {
			q := question{tenant: fmt.Sprint("t", tenant), signal: model.Metrics, family: f, rg: everything}
			if f == model.Text {
				q.signal = model.Logs
			}
			if err := h.check(e, q); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropExpired hides and deletes blocks that have expired, as the server does every few minutes.
func dropExpired(e *Engine) error {
	return (&expiry{compact: e.compactor, catalog: e.catalog, rules: e.rules, grace: e.o.QueryTimeout + time.Minute, now: e.now}).drop(context.Background())
}

func rulesOf(t *testing.T, rest time.Duration, text string) *retention.Rules {
	t.Helper()
	var l retention.List
	must(t, l.UnmarshalText([]byte(text)))
	r, err := retention.Compile(l, rest)
	must(t, err)
	return r
}

// ruled is an engine that is opened once more with other rules, with two series of a signal.
type ruled struct {
	*Engine
	t      *testing.T
	signal model.Signal
	mem    *vfs.MemFS
	now    int64
}

func (s *ruled) open(rules *retention.Rules) {
	s.t.Helper()
	if s.Engine != nil {
		must(s.t, s.Close())
	}
	b, err := bucketfs.New(s.mem, "/bucket")
	must(s.t, err)
	s.Engine, err = OpenEngine(context.Background(), EngineOptions{
		FS: s.mem, DataDir: crashDir, Bucket: b, Node: "n", MemoryBytes: 64 << 20, Idle: true, Now: func() int64 { return s.now }, Retention: rules,
	})
	must(s.t, err)
}

// push writes a row of each series.
func (s *ruled) push() {
	s.t.Helper()
	b := &worldtest.Batch{Tenant: "t0", Signal: s.signal}
	for _, env := range []string{"dev", "prod"} {
		row := worldtest.Float(s.now, 1)
		if s.signal == model.Logs {
			row = worldtest.LineRow(s.now, &model.Line{Text: []byte("line of " + env)})
		}
		b.Series = append(b.Series, worldtest.Series{Labels: model.LabelsOf("__name__", "m", "env", env), Rows: []worldtest.Row{row}})
	}
	must(s.t, pushBatch(s.Path(), b))
}

// expect compares the rows of each series, and what labels, series and statistics show.
func (s *ruled) expect(when string, dev, prod int) {
	s.t.Helper()
	ctx := context.Background()
	req := &model.Request{Tenant: "t0", Signal: s.signal, Range: everything, Quota: new(model.Quota), Cost: new(model.Cost)}
	values, _, err := s.Querier().LabelValues(ctx, req, "env", 0)
	must(s.t, err)
	names, _, err := s.Querier().LabelNames(ctx, req, 0)
	must(s.t, err)
	n, err := s.Querier().Cardinality(ctx, req, "")
	must(s.t, err)
	var want []string
	rows := map[string]int{}
	for env, n := range map[string]int{"dev": dev, "prod": prod} {
		if n > 0 {
			want = append(want, env)
			rows[env] = n
		}
	}
	slices.Sort(want)
	if !slices.Equal(values, want) || len(want) > 0 && len(names) != 2 || int(n.Series) != len(want) {
		s.t.Errorf("%s, %s: values %q, names %q, %d series; want %q", s.signal, when, values, names, n.Series, want)
	}
	got := map[string]int{}
	if s.signal == model.Logs {
		must(s.t, eachLine(s.Engine, req, func(l model.Labels, _ readtest.Line) { got[string(l.Get("env"))]++ }))
	} else {
		set, err := s.Querier().Select(ctx, req)
		must(s.t, err)
		var read model.Rows
		for set.Next(ctx) {
			read.Reset()
			must(s.t, set.AppendRows(ctx, &read))
			got[string(set.Labels().Get("env"))] += read.Len()
		}
		must(s.t, errors.Join(set.Err(), set.Close()))
	}
	if got["dev"] != rows["dev"] || got["prod"] != rows["prod"] {
		s.t.Errorf("%s, %s: rows %v, want %v", s.signal, when, got, rows)
	}
}

// groups returns the retention groups of the live blocks whose day is over, without the names of the rules.
func (s *ruled) groups() string {
	var all []string
	for _, b := range s.catalog.Live() {
		keep, _, _ := strings.Cut(b.Group, ".")
		all = append(all, keep)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestDeletionStates counts deletions by their state.
func TestDeletionStates(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := newSetup(t, func(o *EngineOptions) { o.Registerer = reg })
	must(t, s.push("a", up, s.now, 1))
	for _, wait := range []time.Duration{0, time.Hour} {
		d := deletion.Deletion{Tenant: "a", Signal: model.Metrics, Range: everything, Matchers: []deletion.Matcher{{}}, NotBefore: s.now + int64(wait)}
		_, err := s.Delete(context.Background(), d)
		must(t, err)
	}
	const head = "# HELP shale_deletions Deletions by state: received (can still be cancelled), processing (compaction is to drop rows), processed (no row is left).\n# TYPE shale_deletions gauge\n"
	want := head + "shale_deletions{state=\"processed\"} 0\nshale_deletions{state=\"processing\"} 1\nshale_deletions{state=\"received\"} 1\n"
	must(t, testutil.GatherAndCompare(reg, strings.NewReader(want), "shale_deletions"))
	must(t, s.Close())
}

// TestRetentionRules: a rule hides rows at once, wherever they are, and shows them once it gets longer.
// Compaction divides days by the ages of series, and moves the series of a rule that has got longer before
// the block expires.
func TestRetentionRules(t *testing.T) {
	const oneDay = 24 * time.Hour
	for _, signal := range []model.Signal{model.Metrics, model.Logs} {
		s := &ruled{t: t, signal: signal, mem: vfs.NewMem(), now: int64(1_700_006_400 * time.Second)} // midnight
		short := rulesOf(t, 30*oneDay, `[{match: '{env="dev"}', keep: 3d}]`)
		s.open(short)
		s.push()
		s.expect("new", 1, 1)
		s.now += int64(80 * time.Hour)
		s.expect("expired in a buffer", 0, 1)
		must(t, s.Flush())
		s.expect("expired in a part", 0, 1)
		s.open(rulesOf(t, 30*oneDay, ""))
		s.expect("without rules", 1, 1)
		s.open(short)
		must(t, s.Ship())
		s.expect("expired in a block", 0, 1)
		s.push()
		must(t, s.Ship())
		// The newest block says how late it is, and the row of dev is gone.
		must(t, s.Compact(context.Background()))
		must(t, dropExpired(s.Engine))
		s.expect("compacted", 1, 2)
		s.now += int64(26 * time.Hour)
		must(t, s.Compact(context.Background()))
		if got := s.groups(); got != "30d 30d 3d" {
			t.Errorf("%s: groups %s", signal, got)
		}
		s.expect("divided", 1, 2)

		// The rule gets longer: what is there moves to its group before the block of 3d expires.
		long := rulesOf(t, 30*oneDay, `[{match: '{env="dev"}', keep: 10d}]`)
		s.open(long)
		s.now += int64(4 * oneDay)
		s.push()
		must(t, s.Ship())
		s.expect("of a longer rule", 2, 3)
		must(t, dropExpired(s.Engine))
		must(t, s.Compact(context.Background()))
		s.expect("of a longer rule, compacted", 2, 3)

		// The rule gets shorter, also for prod: hidden at once, and then gone.
		s.open(rulesOf(t, 2*oneDay, `[{match: '{env="dev"}', keep: 1d}]`))
		s.expect("of a shorter rule", 1, 1)
		must(t, s.Compact(context.Background()))
		must(t, dropExpired(s.Engine))
		s.open(rulesOf(t, 0, ""))
		s.expect("gone for good", 1, 1)
		must(t, s.Close())
	}
}
