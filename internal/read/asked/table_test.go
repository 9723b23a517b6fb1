package asked

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func equal(name, value string) model.Matcher {
	return model.Matcher{Name: name, Value: value, Match: func(v string) bool { return v == value }}
}

func TestTable(t *testing.T) {
	mem, now := vfs.NewCrashableMem(), time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	open := func() *Table {
		return Open(Options{FS: mem, Dir: "/asked", Now: func() int64 { return now.UnixNano() }})
	}
	a := open()
	a.Selected("t", []model.Matcher{equal(model.NameLabel, "up"), equal("job", "x")})
	a.Selected("t", []model.Matcher{{Name: model.NameLabel, Op: model.MatchRegexp, Value: "ab?"}})
	a.Named("t", "pod")
	if s := a.Look("t"); s.Full || s.Days != 0 || s.Since != "2026-11-01" || !s.Metrics["up"] || !s.Labels["job"] || !s.Labels["pod"] || len(s.Selectors) != 1 {
		t.Errorf("%+v", s)
	}
	a.Save()
	mem = mem.CrashClone(vfs.CrashCloneCfg{})
	now = now.AddDate(0, 0, 30)
	a = open()
	s := a.Look("t")
	if s.Full || s.Days != 30 || !s.Metrics["up"] || len(s.Selectors) != 1 {
		t.Errorf("30 days later: %+v", s)
	}
	for value, want := range map[string]bool{"a": true, "ab": true, "xab": false, "abb": false} {
		if got := s.Selectors[0][0].Match(value); got != want {
			t.Errorf("the selector and %s: %v", value, got)
		}
	}
	if s := a.Look("another"); s.Full || len(s.Metrics) > 0 {
		t.Errorf("another tenant: %+v", s)
	}
	now = now.AddDate(0, 0, 2)
	a.Selected("t", []model.Matcher{equal(model.NameLabel, "new")})
	if s := a.Look("t"); s.Metrics["up"] || !s.Metrics["new"] || len(s.Selectors) != 0 {
		t.Errorf("32 days later: %+v", s)
	}
	a.Save()
	if a.names != 1 {
		t.Errorf("%d names are remembered", a.names)
	}
}

// A flood of names takes bounded memory, and says that it was one.
func TestTableIsBounded(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	a := Open(Options{Now: func() int64 { return now.UnixNano() }})
	now = now.AddDate(0, 0, 40)
	var done sync.WaitGroup
	for g := range 4 {
		done.Go(func() {
			for i := range maxOfTenant {
				a.Selected("t", []model.Matcher{equal(model.NameLabel, fmt.Sprint("m", g, i))})
				a.Selected("s", []model.Matcher{equal("x", fmt.Sprint(g, i))})
			}
		})
	}
	done.Wait()
	for _, tenant := range []string{"t", "s"} {
		if s := a.Look(tenant); !s.Full || len(s.Metrics) > maxOfTenant || len(s.Selectors) > maxSelectors {
			t.Errorf("%s: full %v, %d metrics, %d selectors", tenant, s.Full, len(s.Metrics), len(s.Selectors))
		}
	}
	if s := a.Look("quiet"); s.Full {
		t.Error("another tenant is full")
	}
	now = now.AddDate(0, 0, 31)
	if s := a.Look("t"); s.Full {
		t.Error("the mark counts for too long")
	}
}
