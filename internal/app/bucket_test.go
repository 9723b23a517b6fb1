package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// allSamples is a request for all samples of a tenant.
func allSamples(tenant string) *model.Request {
	return &model.Request{Tenant: tenant, Signal: model.Metrics, Range: everything}
}

// fails reports the error of reading all samples of a tenant.
func (s *setup) fails(tenant string) error {
	ctx := context.Background()
	set, err := s.Querier().Select(ctx, allSamples(tenant))
	if err != nil {
		return err
	}
	defer set.Close()
	var rows model.Rows
	for set.Next(ctx) {
		if err := set.AppendRows(ctx, &rows); err != nil {
			return err
		}
	}
	return set.Err()
}

// counted returns the value of a metric without labels.
func counted(t *testing.T, r *prometheus.Registry, name string) float64 {
	t.Helper()
	all, err := r.Gather()
	must(t, err)
	for _, f := range all {
		if m := f.GetMetric(); f.GetName() == name && len(m) == 1 {
			return m[0].GetCounter().GetValue() + m[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// TestDamagedBlock: a block that is truncated, empty or missing is corrupt, whatever is asked. The log names
// it once.
func TestDamagedBlock(t *testing.T) {
	for what, damage := range map[string]func(s *setup, name string) error{
		"truncated": func(s *setup, name string) error {
			data, err := s.o.Bucket.Get(context.Background(), name)
			return errors.Join(err, s.o.Bucket.Put(context.Background(), name, bytes.NewReader(data[:len(data)/2]), int64(len(data)/2)))
		},
		"empty": func(s *setup, name string) error {
			return s.o.Bucket.Put(context.Background(), name, strings.NewReader(""), 0)
		},
		"missing": func(s *setup, name string) error { return s.o.Bucket.Delete(context.Background(), name) },
	} {
		var log bytes.Buffer
		metrics := prometheus.NewRegistry()
		s := newSetup(t, func(o *EngineOptions) {
			o.Logger, o.Registerer = slog.New(slog.NewTextHandler(&log, nil)), metrics
		})
		must(t, s.push("a", up, s.now, 1))
		must(t, s.push("b", up, s.now, 2))
		must(t, s.Ship())
		name := catalog.ObjectName(s.catalog.Live()[0].ID)
		must(t, damage(s, name))
		for range 3 {
			if err := s.fails("a"); !errors.Is(err, model.ErrCorrupt) || errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", what, err)
			}
			if _, _, err := s.Querier().LabelNames(context.Background(), allSamples("a"), 0); !errors.Is(err, model.ErrCorrupt) {
				t.Errorf("%s: label names: %v", what, err)
			}
		}
		if n := strings.Count(log.String(), "block="+name); n != 1 {
			t.Errorf("%s: %d log lines:\n%s", what, n, &log)
		}
		if n := counted(t, metrics, "shale_archive_damaged_blocks_total"); n != 1 {
			t.Errorf("%s: %g damaged blocks", what, n)
		}
		must(t, s.Close())
	}
}
