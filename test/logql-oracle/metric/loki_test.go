package metric

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-kit/log"
	"github.com/grafana/dskit/user"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/grafana/loki/v3/pkg/chunkenc"
	"github.com/grafana/loki/v3/pkg/compression"
	"github.com/grafana/loki/v3/pkg/iter"
	"github.com/grafana/loki/v3/pkg/logproto"
	"github.com/grafana/loki/v3/pkg/logql"
	"github.com/grafana/loki/v3/pkg/logqlmodel"

	"github.com/shaledb/shale/internal/read/logql/logqltest"
)

// store is a data set in Loki's own chunks: one for each stream.
type store struct {
	streams []stream
}

type stream struct {
	labels labels.Labels
	chunk  *chunkenc.MemChunk
}

// newStore puts a data set into chunks, which drop repeated lines.
func newStore(d *logqltest.Dataset) (*store, error) {
	s := &store{}
	for _, x := range d.Streams {
		c := chunkenc.NewMemChunk(chunkenc.ChunkFormatV4, compression.None, chunkenc.UnorderedWithStructuredMetadataHeadBlockFmt, 256<<10, 0)
		for _, l := range x.Lines {
			e := &logproto.Entry{
				Timestamp: time.Unix(0, l.Time), Line: l.Text,
				StructuredMetadata: logproto.FromLabelsToLabelAdapters(labels.FromStrings(l.Metadata...)),
			}
			if _, err := c.Append(e); err != nil {
				return nil, err
			}
		}
		s.streams = append(s.streams, stream{labels.FromStrings(x.Labels...), c})
	}
	return s, nil
}

// selected returns the streams that match.
func (s *store) selected(matchers []*labels.Matcher) (all []stream) {
streams:
	for _, x := range s.streams {
		for _, m := range matchers {
			if !m.Matches(x.labels.Get(m.Name)) {
				continue streams
			}
		}
		all = append(all, x)
	}
	return all
}

// SelectLogs returns the lines of a query.
func (s *store) SelectLogs(ctx context.Context, p logql.SelectLogParams) (iter.EntryIterator, error) {
	e, err := p.LogSelector()
	if err != nil {
		return nil, err
	}
	pipeline, err := e.Pipeline()
	if err != nil {
		return nil, err
	}
	var all []iter.EntryIterator
	for _, x := range s.selected(e.Matchers()) {
		it, err := x.chunk.Iterator(ctx, p.Start, p.End, p.Direction, pipeline.ForStream(x.labels))
		if err != nil {
			return nil, err
		}
		all = append(all, it)
	}
	return iter.NewSortEntryIterator(all, p.Direction), nil
}

// SelectSamples returns the samples of a range aggregation.
func (s *store) SelectSamples(ctx context.Context, p logql.SelectSampleParams) (iter.SampleIterator, error) {
	e, err := p.Expr()
	if err != nil {
		return nil, err
	}
	selector, err := e.Selector()
	if err != nil {
		return nil, err
	}
	extractors, err := e.Extractors()
	if err != nil {
		return nil, err
	}
	if len(extractors) != 1 {
		return nil, fmt.Errorf("expected 1 extractor, got %d", len(extractors))
	}
	var all []iter.SampleIterator
	for _, x := range s.selected(selector.Matchers()) {
		all = append(all, x.chunk.SampleIterator(ctx, p.Start, p.End, extractors[0].ForStream(x.labels)))
	}
	return iter.NewSortSampleIterator(all), nil
}

// run runs a query with Loki's engine. approx_topk is exact here, and needs 200,000 sketches a step there.
func (s *store) run(q *logqltest.Query) *logqltest.Result {
	direction, limit := logproto.BACKWARD, max(q.Limit, 100)
	if q.Forward {
		direction = logproto.FORWARD
	}
	if q.Limit > 0 {
		limit = q.Limit
	}
	text := strings.ReplaceAll(q.Text, "approx_topk", "topk")
	params, err := logql.NewLiteralParams(text, time.Unix(0, q.Start), time.Unix(0, q.End), time.Duration(q.Step), 0, direction, uint32(limit), nil, nil)
	if err != nil {
		return &logqltest.Result{Error: err.Error()}
	}
	e := logql.NewEngine(logql.EngineOpts{MaxCountMinSketchHeapSize: 10_000}, s, logql.NoLimits, log.NewNopLogger())
	r, err := e.Query(params).Exec(user.InjectOrgID(context.Background(), "t"))
	if err != nil {
		return &logqltest.Result{Error: err.Error()}
	}
	return resultOf(r.Data)
}

func resultOf(v parser.Value) *logqltest.Result {
	r := &logqltest.Result{Type: string(v.Type())}
	switch v := v.(type) {
	case promql.Vector:
		for _, s := range v {
			r.Series = append(r.Series, logqltest.Series{Labels: pairs(s.Metric), Points: []logqltest.Point{{Time: s.T, Value: s.F}}})
		}
	case promql.Matrix:
		for _, s := range v {
			out := logqltest.Series{Labels: pairs(s.Metric)}
			for _, p := range s.Floats {
				out.Points = append(out.Points, logqltest.Point{Time: p.T, Value: p.F})
			}
			r.Series = append(r.Series, out)
		}
	case promql.Scalar:
		r.Series = []logqltest.Series{{Points: []logqltest.Point{{Time: v.T, Value: v.V}}}}
	case logqlmodel.Streams:
		for _, s := range v {
			l, err := parser.NewParser(parser.Options{}).ParseMetric(s.Labels)
			if err != nil {
				return &logqltest.Result{Error: err.Error()}
			}
			out := logqltest.Series{Labels: pairs(l)}
			for _, e := range s.Entries {
				out.Lines = append(out.Lines, logqltest.Entry{Time: e.Timestamp.UnixNano(), Text: e.Line})
			}
			r.Series = append(r.Series, out)
		}
	}
	return r
}

func pairs(l labels.Labels) (out []string) {
	l.Range(func(l labels.Label) { out = append(out, l.Name, l.Value) })
	return out
}
