package write

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/model"
)

// logs makes a batch of streams of two lines each, at the given ages.
func logs(p *Path, tenant string, w wire, ages ...time.Duration) *model.Batch {
	b := p.Batch(tenant, model.Logs)
	b.Source = w
	for i, pairs := range w {
		for _, line := range []string{"first", "second line"} {
			begin := len(b.Text.Bytes)
			b.Text.Bytes = model.AppendLine(b.Text.Bytes, &model.Line{Text: []byte(line), Metadata: model.LabelsOf("detected_level", "info")})
			b.Text.EndBlob(now-int64(ages[i]), model.KindText, begin, 0)
		}
		b.EndSeries(model.LabelsOf(pairs...).Key(seed, model.Logs))
	}
	return b
}

func TestLinesTooOldOrTooNewAreLeftOut(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := &store{}
	p := New(Options{Seed: seed, Head: s, Journal: s, Registerer: reg, Now: func() int64 { return now },
		Limits: Limits{MaxAge: time.Hour, MaxFuture: time.Minute}})
	res, err := p.Push(context.Background(), logs(p, "t", wire{{"app", "ok"}, {"app", "old"}, {"app", "new"}}, 0, 2*time.Hour, -2*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	two := Counts{Lines: 2, LineBytes: 16}
	want := Rejections{
		{Reason: ReasonTooOld, At: 2, Samples: 2, ByKind: two, Examples: []string{
			`entry for stream '{app="old"}' has timestamp too old: 2026-02-28T22:00:00Z, oldest acceptable timestamp is: 2026-02-28T23:00:00Z`,
			`entry for stream '{app="old"}' has timestamp too old: 2026-02-28T22:00:00Z, oldest acceptable timestamp is: 2026-02-28T23:00:00Z`,
		}},
		{Reason: ReasonTooNew, At: 4, Samples: 2, ByKind: two, Examples: []string{
			`entry for stream '{app="new"}' has timestamp too new: 2026-03-01T00:02:00Z`,
			`entry for stream '{app="new"}' has timestamp too new: 2026-03-01T00:02:00Z`,
		}},
	}
	if diff := cmp.Diff(want, res.Rejected); diff != "" {
		t.Error(diff)
	}
	if res.ByKind != two || res.Stored != 2 || res.ByKind.String() != "2 lines" {
		t.Errorf("stored %+v", res)
	}
	got := s.batches[0]
	if got.Text.Len() != 2 || len(got.Keys) != 1 || string(got.Labels.At(0)) != string(model.LabelsOf("app", "ok")) {
		t.Errorf("the journal has %+v", got)
	}
	if l, err := model.SplitLine(got.Text.Blob(1)); err != nil || string(l.Text) != "second line" {
		t.Errorf("line %q %v", l.Text, err)
	}
	err = testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP shale_write_discarded_line_bytes_total Bytes of log lines received but not stored, by reason.
# TYPE shale_write_discarded_line_bytes_total counter
shale_write_discarded_line_bytes_total{reason="too_far_in_future"} 16
shale_write_discarded_line_bytes_total{reason="too_old"} 16
# HELP shale_write_discarded_lines_total Log lines received but not stored, by reason.
# TYPE shale_write_discarded_lines_total counter
shale_write_discarded_lines_total{reason="too_far_in_future"} 2
shale_write_discarded_lines_total{reason="too_old"} 2
# HELP shale_write_line_bytes_total Bytes of log lines acknowledged as durable, without their structured metadata.
# TYPE shale_write_line_bytes_total counter
shale_write_line_bytes_total 16
# HELP shale_write_lines_total Log lines acknowledged as durable.
# TYPE shale_write_lines_total counter
shale_write_lines_total 2
`), "shale_write_lines_total", "shale_write_line_bytes_total", "shale_write_discarded_lines_total", "shale_write_discarded_line_bytes_total")
	if err != nil {
		t.Error(err)
	}
}

// A stream may have one label more than a series: receivers do not count its service_name.
func TestStreamsHaveAServiceNameBeside(t *testing.T) {
	for _, c := range []struct{ labels, lines, samples int }{{3, 2, 1}, {4, 2, 0}, {5, 0, 0}} {
		var pairs []string
		for i := range c.labels {
			pairs = append(pairs, strings.Repeat("l", i+1), "v")
		}
		w := wire{pairs}
		for how, source := range map[string]model.LabelSource{"built": w, "taken": pieces{w}} {
			p := newPath(&store{}, Limits{MaxLabels: 3})
			stream, series := logs(p, "t", w, 0), send(p, w, 0)
			for b, want := range map[*model.Batch]int{stream: c.lines, series: c.samples} {
				signal := b.Signal
				b.Source = source
				if res, err := p.Push(context.Background(), b); err != nil || res.Stored != want {
					t.Errorf("%d labels, %s, signal %v: %+v %v, want %d rows", c.labels, how, signal, res, err, want)
				}
			}
		}
	}
}

func TestRates(t *testing.T) {
	clock := now
	s := &store{}
	p := New(Options{Seed: seed, Head: s, Journal: s, Now: func() int64 { return clock }, Limits: Limits{TenantLines: 1, TenantLineBytes: 1000}})
	push := func(tenant string, streams int) error {
		w := make(wire, streams)
		for i := range w {
			w[i] = []string{"app", strings.Repeat("a", i+1)}
		}
		_, err := p.Push(context.Background(), logs(p, tenant, w, make([]time.Duration, streams)...))
		return err
	}
	// A push of more than ten seconds' worth succeeds, and the tenant goes into debt for it.
	if err := push("a", 20); err != nil {
		t.Fatal(err)
	}
	var r *Refused
	if err := push("a", 1); !errors.As(err, &r) || r.Status != http.StatusTooManyRequests || r.RetryAfter != 31*time.Second || r.Limit != "limits.tenant-lines" ||
		!strings.HasPrefix(r.Text, "ingestion rate limit exceeded for user a (limit: 1 lines/sec) while attempting to ingest '2' lines totaling '16' bytes") {
		t.Errorf("%#v", err)
	}
	if !errors.Is(r, model.ErrTransient) {
		t.Error("a rate is met for ever")
	}
	if err := push("b", 1); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	clock += int64(31 * time.Second)
	// A push that fails is not charged.
	s.err = model.ErrTransient
	for range 100 {
		if err := push("a", 1); !errors.As(err, &r) || r.Status != http.StatusServiceUnavailable {
			t.Fatalf("%v", err)
		}
	}
	s.err = nil
	if err := push("a", 1); err != nil {
		t.Error(err)
	}
	if err := push("a", 1); !errors.As(err, &r) || r.Status != http.StatusTooManyRequests {
		t.Errorf("%v", err)
	}
}
