package whisperimport

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/client"
)

// Verification says how what was read back compares with the files.
type Verification struct {
	Series    int64 `json:"series"`
	Same      int64 `json:"points_same"`
	Missing   int64 `json:"points_missing"`
	Different int64 `json:"points_different"`
	// More counts points of the server that the files do not have.
	More     int64    `json:"points_more"`
	Examples []string `json:"examples,omitempty"`

	mu sync.Mutex
}

// Failed reports whether anything is missing or different.
func (v *Verification) Failed() bool { return v.Missing+v.Different > 0 }

const (
	// A remote read asks for so many series, or so many points, at one time.
	readSeries = 100
	readPoints = 50_000
	// maxExamples bounds the differences that a report describes.
	maxExamples = 10
)

// verify reads all files once more, and compares them with what the server has.
func (i *Import) verify(ctx context.Context, v *Verification) error {
	server := i.Server.As(i.Server.Tenant)
	server.Retry = &client.Retry{Patience: i.Patience}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, i.Concurrency))
	var batch []*series
	points := 0
	flush := func() {
		if full := batch; len(full) > 0 {
			g.Go(func() error { return i.compare(ctx, server, full, v) })
		}
		batch, points = nil, 0
	}
	err := i.reader().each(ctx, "", max(1, i.Concurrency), func(s *series) error {
		if s.rows == nil || s.rows.Len() == 0 {
			i.done.Add(1)
			return nil
		}
		batch = append(batch, s)
		if points += s.rows.Len(); points >= readPoints || len(batch) >= readSeries {
			flush()
		}
		return nil
	})
	flush()
	if waited := g.Wait(); waited != nil {
		return waited
	}
	return err
}

func (i *Import) compare(ctx context.Context, server *client.Server, batch []*series, v *Verification) error {
	queries := make([]*prompb.Query, len(batch))
	for n, s := range batch {
		last := s.rows.Len() - 1
		q := &prompb.Query{StartTimestampMs: s.rows.Times[0] / 1e6, EndTimestampMs: s.rows.Times[last] / 1e6}
		s.labels.Range(func(l labels.Label) {
			q.Matchers = append(q.Matchers, &prompb.LabelMatcher{Type: prompb.LabelMatcher_EQ, Name: l.Name, Value: l.Value})
		})
		queries[n] = q
	}
	got, err := server.RemoteReadAll(ctx, queries)
	if err != nil {
		return fmt.Errorf("reading back files from %q on: %w", batch[0].path, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for n, s := range batch {
		v.series(s, got[n])
		i.done.Add(1)
	}
	return nil
}

// series compares one series. A query for it may find others, which have more labels.
func (v *Verification) series(want *series, found []client.Series) {
	v.Series++
	var got []client.Sample
	for i := range found {
		if labels.Equal(labels.FromMap(found[i].Metric), want.labels) {
			got = found[i].Values
		}
	}
	for i, at := range want.rows.Times {
		ms := at / 1e6
		for len(got) > 0 && got[0].Ms < ms {
			v.More++
			got = got[1:]
		}
		switch bits := want.rows.Values[i]; {
		case len(got) == 0 || got[0].Ms > ms:
			v.Missing++
			v.example("%s: %s at %d ms is missing", want.path, want.labels, ms)
			continue
		case got[0].Bits == bits && got[0].Histogram == nil:
			v.Same++
		default:
			v.Different++
			v.example("%s: %s at %d ms is %v, expected %v", want.path, want.labels, ms, math.Float64frombits(got[0].Bits), math.Float64frombits(bits))
		}
		got = got[1:]
	}
	v.More += int64(len(got))
}

func (v *Verification) example(format string, args ...any) {
	if len(v.Examples) < maxExamples {
		v.Examples = append(v.Examples, fmt.Sprintf(format, args...))
	}
}
