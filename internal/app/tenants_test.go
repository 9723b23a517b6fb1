package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/filewatch"
	"github.com/shaledb/shale/internal/logtest"
)

// A changed file counts without a restart, and one that is wrong or gone changes nothing but a metric and the
// log.
func TestTenantsAreReadAgain(t *testing.T) {
	c := config.Default()
	c.TenantsFile = filepath.Join(t.TempDir(), "tenants.yaml")
	put := func(text string) {
		t.Helper()
		// In one step, since the file is looked at all the time.
		next := c.TenantsFile + ".next"
		if err := errors.Join(os.WriteFile(next, []byte(text), 0o600), os.Rename(next, c.TenantsFile)); err != nil {
			t.Fatal(err)
		}
	}
	var log logtest.Buffer
	if _, err := openTenants(t.Context(), &c, prometheus.NewRegistry(), slog.New(slog.NewTextHandler(&log, nil))); err == nil || !strings.Contains(err.Error(), "tenants.file") {
		t.Fatalf("a missing file: %v", err)
	}
	put("tenants: {a: {limits.tenant-series: 5}}")
	book := &tenantBook{c: &c, log: slog.New(slog.NewTextHandler(&log, nil)), fresh: prometheus.NewGauge(prometheus.GaugeOpts{Name: "fresh"})}
	book.file = filewatch.New(c.TenantsFile)
	if err := book.load(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	hurry := make(chan os.Signal)
	var done sync.WaitGroup
	done.Go(func() { book.watch(ctx, time.Millisecond, hurry) })
	defer func() {
		stop()
		done.Wait()
	}()
	await := func(what string, ok func() bool) {
		t.Helper()
		for begin := time.Now(); !ok(); time.Sleep(time.Millisecond) {
			if time.Since(begin) > 30*time.Second {
				t.Fatalf("%s: series %d, fresh %v, log %s", what, book.head("a").Series, testutil.ToFloat64(book.fresh), log.String())
			}
		}
	}
	if got := book.head("a").Series; got != 5 {
		t.Fatalf("%d series", got)
	}
	put("tenants: {a: {limits.tenant-series: 1234}}")
	await("a change", func() bool { return book.head("a").Series == 1234 })
	put("tenants: {a: {limits.tenant-series: many}}")
	await("a mistake", func() bool {
		return testutil.ToFloat64(book.fresh) == 0 && strings.Contains(log.String(), "tenants.a.limits.tenant-series")
	})
	if got := book.head("a").Series; got != 1234 {
		t.Errorf("%d series after a mistake", got)
	}
	if err := os.Remove(c.TenantsFile); err != nil {
		t.Fatal(err)
	}
	await("no file", func() bool { return strings.Contains(log.String(), "put it back") })
	changed := make(chan struct{}, 100)
	note := func() { changed <- struct{}{} }
	book.changed.Store(&note)
	put("defaults: {limits.labels: 3, retention: 9d}")
	await("a new file", func() bool { return testutil.ToFloat64(book.fresh) == 1 && book.write("a").MaxLabels == 3 })
	select {
	case <-changed:
	case <-time.After(30 * time.Second):
		t.Error("retention has changed, and nobody was told")
	}
	hurry <- nil
	if book.head("a").Series != 0 || book.lines("b").MaxLabels != 3 {
		t.Errorf("%+v", book.now.Load().Of("a"))
	}
}
