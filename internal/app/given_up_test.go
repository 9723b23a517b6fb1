package app

import (
	"fmt"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/topics"
	"github.com/shaledb/shale/internal/write"
)

// TestGivenUpIsSaid: whoever asks for times at which rows of given-up records may lie is told, in each kind
// of query, also by a process that starts later. Others are not.
func TestGivenUpIsSaid(t *testing.T) {
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	s := newSetup(t, func(o *EngineOptions) {
		o.Write = write.Limits{MaxAge: 7 * 24 * time.Hour, MaxFuture: 10 * time.Minute}
	})
	s.now = at.UnixNano()
	// Each start has another data folder: nothing of it is there.
	restart := func() {
		t.Helper()
		must(t, s.Close())
		s.mem, s.o.DataDir = nil, s.o.DataDir+"-again"
		var err error
		if s.Engine, err = OpenEngine(t.Context(), s.o); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { must(t, s.Close()) }()
	ship := func(v catalog.Coverage, skips ...catalog.Skip) {
		t.Helper()
		if _, err := s.catalog.Ship(t.Context(), catalog.Ship{Covered: []catalog.Coverage{v}, Skipped: skips}, nil); err != nil {
			t.Fatal(err)
		}
	}
	said := func(what string, from, to time.Duration, want ...string) {
		t.Helper()
		r := model.TimeRange{Min: at.Add(from).UnixNano(), Max: at.Add(to).UnixNano()}
		for _, signal := range []model.Signal{model.Metrics, model.Logs} {
			for name, query := range map[string]func(*model.Request) error{
				"select": func(r *model.Request) error {
					set, err := s.querier.Select(t.Context(), r)
					if err == nil {
						err = set.Close()
					}
					return err
				},
				"text": func(r *model.Request) error {
					set, err := s.querier.SelectText(t.Context(), r)
					if err == nil {
						err = set.Close()
					}
					return err
				},
				"kept":   func(r *model.Request) error { return s.querier.Kept(r) },
				"names":  func(r *model.Request) error { _, _, err := s.querier.LabelNames(t.Context(), r, 0); return err },
				"values": func(r *model.Request) error { _, _, err := s.querier.LabelValues(t.Context(), r, "a", 0); return err },
				"labels": func(r *model.Request) error { _, err := s.querier.Labels(t.Context(), r); return err },
			} {
				cost := new(model.Cost)
				if err := query(&model.Request{Tenant: "any", Signal: signal, Range: r, Cost: cost}); err != nil {
					t.Fatal(err)
				}
				if got := cost.Warnings.All(); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s, %s of %s: got %q, expected %q", what, name, signal, got, want)
				}
			}
		}
	}
	const week = 7 * 24 * time.Hour
	ship(catalog.Coverage{Node: topics.Node(3), Epoch: 1, From: 1, To: 4, Appended: at.Add(-time.Hour).UnixNano()})
	said("nothing is lost", -100*week, week)

	ship(catalog.Coverage{Node: topics.Node(3), Epoch: 1, From: 5, To: 9}, catalog.Skip{Node: topics.Node(3), Epoch: 1, From: 5, To: 9, Why: "deleted"})
	const deleted = "the result may lack rows: partition 3 of epoch 1, offsets 4 to 8 were given up: deleted; they came between 2026-11-28T11:00:00Z and 2026-11-28T12:00:00Z"
	for range 2 {
		said("a loss", -time.Hour, 0, deleted)
		said("the oldest row that was accepted", -2*week, -week-time.Hour, deleted)
		said("an older one", -2*week, -week-3*time.Hour)
		said("the newest row that was accepted", 9*time.Minute, week, deleted)
		said("a newer one", 2*time.Hour, week)
		restart()
	}
	s.now += int64(time.Hour)
	ship(catalog.Coverage{Node: topics.Node(0), Epoch: 2, From: 1, To: 1}, catalog.Skip{Node: topics.Node(0), Epoch: 2, From: 1, To: 1, Why: "poison"})
	const poison = "the result may lack rows: partition 0 of epoch 2, offsets 0 to 0 were given up: poison; they came before 2026-11-28T13:00:00Z"
	said("two", -time.Hour, 0, deleted, poison)
	said("times that are not known", -99*week, -98*week, poison)
	for n := range int32(2) {
		ship(catalog.Coverage{Node: topics.Node(1 + n), Epoch: 2, From: 1, To: 0, Closed: true}, catalog.Skip{Node: topics.Node(1 + n), Epoch: 2, From: 1, To: catalog.ToEnd, Why: "gone"})
	}
	said("a topic", -99*week, -98*week, poison, "the result may lack rows: partition 1 of epoch 2, offsets from 0; partition 2 of epoch 2, offsets from 0 were given up: gone; they came before 2026-11-28T13:00:00Z")

	// Ships without blocks are collected, those that give something up are not.
	s.now += int64(100 * week)
	ship(catalog.Coverage{Node: topics.Node(3), Epoch: 1, From: 10, To: 11})
	for range 2 {
		if _, err := s.catalog.Collect(t.Context(), catalog.CollectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	restart()
	said("after a collection", -time.Hour, -time.Minute, deleted, poison, "the result may lack rows: partition 1 of epoch 2, offsets from 0; partition 2 of epoch 2, offsets from 0 were given up: gone; they came before 2026-11-28T13:00:00Z")
}
