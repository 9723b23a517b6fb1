package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a store whose active series the test sets.
type world struct {
	mu     sync.Mutex
	now    int64
	active []model.Labels
	limits Limits
	err    error
	counts int
}

func (w *world) table(reg prometheus.Registerer) *Table {
	return New(Options{
		Limits: func(string) *Limits {
			w.mu.Lock()
			defer w.mu.Unlock()
			l := w.limits
			return &l
		},
		Active: func(_ context.Context, _ string, s model.Signal, emit func(model.Labels)) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.counts++; s == model.Metrics {
				for _, l := range w.active {
					emit(l)
				}
			}
			return w.err
		},
		Now: func() int64 {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.now
		},
		Registerer: reg,
	})
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func batch(s model.Signal, series ...model.Labels) *model.Batch {
	b := &model.Batch{Tenant: "a", Signal: s}
	for i, l := range series {
		b.Labels.Append(uint32(i), l)
	}
	return b
}

// push creates what the table lets through, and returns what it does not.
func push(t *Table, s model.Signal, series ...model.Labels) (refused []int, err error) {
	err = t.Over(context.Background(), batch(s, series...), func(i int) { refused = append(refused, i) })
	var created []model.Labels
	for i, l := range series {
		if !slices.Contains(refused, i) {
			created = append(created, l)
		}
	}
	t.Observe(batch(s, created...))
	return refused, err
}

func sets(t *testing.T, text string) (s LabelSets) {
	t.Helper()
	if err := s.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if again := (LabelSets{}); again.UnmarshalText([]byte(s.String())) != nil || again.String() != s.String() {
		t.Errorf("%s is not read back", s)
	}
	return s
}

func TestOver(t *testing.T) {
	up := func(i int) model.Labels { return model.LabelsOf("__name__", "up", "i", fmt.Sprint(i), "team", "x") }
	down := func(i int) model.Labels { return model.LabelsOf("__name__", "down", "i", fmt.Sprint(i)) }
	w := &world{now: int64(time.Hour), limits: Limits{Metric: 3}, active: []model.Labels{up(1)}}
	reg := prometheus.NewRegistry()
	table := w.table(reg)
	defer table.Close()
	if refused, err := push(table, model.Metrics, up(2), down(1)); err != nil || refused != nil {
		t.Fatalf("%v, %v", refused, err)
	}
	w.set(func() { w.now += int64(time.Second) })
	refused, err := push(table, model.Metrics, up(3), down(2), up(4), down(3))
	var limit *model.LimitError
	if !errors.As(err, &limit) || !limit.Tenant || limit.Limit != LimitMetricSeries || !slices.Equal(refused, []int{2}) {
		t.Errorf("refused %v: %v", refused, err)
	}
	if want := "refused 1 of 4 new series: metric up of tenant a has 2 active series and may have 3"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v", err)
	}
	// Series that have become idle count until the next count, which comes a minute after the last.
	w.set(func() { w.active = nil })
	if refused, err := push(table, model.Metrics, up(5)); err == nil {
		t.Errorf("refused %v", refused)
	}
	w.set(func() { w.now += int64(recountEvery) })
	if refused, err := push(table, model.Metrics, up(5)); err != nil {
		t.Errorf("refused %v: %v", refused, err)
	}
	// A label set counts series of both signals, and a change of the limits counts them again.
	w.set(func() {
		w.limits = Limits{Sets: sets(t, `[{match: '{team="x"}', series: 2}]`)}
		w.active = []model.Labels{up(5)}
	})
	if refused, err := push(table, model.Logs, model.LabelsOf("team", "x"), model.LabelsOf("app", "y"), model.LabelsOf("team", "x", "app", "z")); !slices.Equal(refused, []int{2}) ||
		!errors.As(err, &limit) || limit.Limit != LimitLabelSetSeries {
		t.Errorf("refused %v: %v", refused, err)
	}
	// What is created without limits is counted once there are limits.
	w.set(func() { w.limits = Limits{} })
	if refused, err := push(table, model.Metrics, up(6), up(7), up(8), up(9)); err != nil {
		t.Errorf("refused %v: %v", refused, err)
	}
	w.set(func() { w.limits, w.active = Limits{Metric: 3}, []model.Labels{up(6), up(7), up(8), up(9)} })
	if refused, err := push(table, model.Metrics, up(10), down(9)); !slices.Equal(refused, []int{0}) {
		t.Errorf("refused %v: %v", refused, err)
	}
	if n := testutil.ToFloat64(table.counted.WithLabelValues("done")); n != 4 {
		t.Errorf("%v counts", n)
	}
}

// While it is not known which series are active, none is refused, and the next request asks again.
func TestNotKnownYet(t *testing.T) {
	w := &world{now: 5, limits: Limits{Metric: 1}, err: model.ErrTransient}
	table := w.table(nil)
	defer table.Close()
	one, two := model.LabelsOf("__name__", "up", "i", "1"), model.LabelsOf("__name__", "up", "i", "2")
	if refused, err := push(table, model.Metrics, one, two); err != nil {
		t.Errorf("refused %v: %v", refused, err)
	}
	w.set(func() { w.err, w.active = nil, []model.Labels{one, two} })
	if refused, _ := push(table, model.Metrics, model.LabelsOf("__name__", "up", "i", "3")); len(refused) != 1 {
		t.Errorf("refused %v", refused)
	}
}

// Tenants that have created nothing for longest are forgotten, and one alone keeps to the bound.
func TestBounded(t *testing.T) {
	table := (&world{}).table(nil)
	defer table.Close()
	for i := range 3 {
		own := &tenant{used: int64(i), now: newCounts(&Limits{})}
		for j := range maxMetrics / 2 {
			own.now.metrics[uint64(j)] = 1
		}
		table.tenants[fmt.Sprint(i)] = own
		table.metrics += len(own.now.metrics)
		table.known.Add(1)
	}
	table.makeRoomLocked(table.tenants["0"])
	if table.tenants["0"] == nil || table.tenants["1"] != nil || table.tenants["2"] == nil || table.metrics != maxMetrics || table.known.Load() != 2 {
		t.Errorf("%d metrics of %d tenants", table.metrics, len(table.tenants))
	}
	c := newCounts(&Limits{})
	for i := range 10 {
		table.add(c, &LabelSets{}, model.Metrics, model.LabelsOf("__name__", fmt.Sprint(i)), 1, 7)
	}
	if len(c.metrics) != 7 || c.left != 3 {
		t.Errorf("%d metrics, %d left", len(c.metrics), c.left)
	}
}

func TestConcurrent(t *testing.T) {
	w := &world{limits: Limits{Metric: 100, Sets: sets(t, `[{match: up, series: 50}]`)}}
	table := w.table(nil)
	var done sync.WaitGroup
	for g := range 4 {
		done.Go(func() {
			for i := range 50 {
				_, _ = push(table, model.Metrics, model.LabelsOf("__name__", "up", "i", fmt.Sprint(g, i)))
				w.set(func() { w.now += int64(recountEvery) / 2 })
			}
		})
	}
	done.Wait()
	table.Close()
	if w.counts == 0 {
		t.Error("nothing was counted")
	}
}

func TestBadSets(t *testing.T) {
	for text, want := range map[string]string{
		"{a: 1}":                            "expected a list such as",
		"[{match: '{', series: 1}]":         "entry 1: match:",
		"[{match: up}]":                     "entry 1: series: 0 is too small",
		"[{match: up, series: 1, more: 2}]": "unknown field",
	} {
		var s LabelSets
		if err := s.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
