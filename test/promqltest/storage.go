package promqltest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/promql"
)

var errUnsupported = errors.New("not supported")

// Storage is an engine with the storage interface of upstream. Every commit is one push, after which the rows
// are moved.
type Storage struct {
	engine Engine
	move   func(Engine) error
}

var _ storage.Storage = (*Storage)(nil)

// NewStorage returns a storage over an engine. Move, unless nil, is called after each commit and moves the
// rows. Closing the storage closes the engine.
func NewStorage(e Engine, move func(Engine) error) *Storage {
	if move == nil {
		move = func(Engine) error { return nil }
	}
	return &Storage{engine: e, move: move}
}

func (s *Storage) queryable() *promql.Queryable {
	return &promql.Queryable{
		Read: s.engine.Querier(), Tenant: model.DefaultTenant, Quota: new(model.Quota), Cost: new(model.Cost),
	}
}

// Querier returns a querier over [mint, maxt] milliseconds.
func (s *Storage) Querier(mint, maxt int64) (storage.Querier, error) {
	return s.queryable().Querier(mint, maxt)
}

// ExemplarQuerier returns a querier of exemplars.
func (s *Storage) ExemplarQuerier(ctx context.Context) (storage.ExemplarQuerier, error) {
	return s.queryable().ExemplarQuerier(ctx)
}

// ChunkQuerier fails: the test language does not query chunks.
func (s *Storage) ChunkQuerier(int64, int64) (storage.ChunkQuerier, error) {
	return nil, fmt.Errorf("chunk querier: %w", errUnsupported)
}

// Appender is the older of upstream's interfaces; the test language writes through AppenderV2.
func (s *Storage) Appender(context.Context) storage.Appender { return nil }

// AppenderV2 returns an appender, which collects one batch.
func (s *Storage) AppenderV2(ctx context.Context) storage.AppenderV2 {
	return &appender{ctx: ctx, s: s, batch: s.engine.Path().Batch(model.DefaultTenant, model.Metrics)}
}

// StartTime is 1970.
func (s *Storage) StartTime() (int64, error) { return 0, nil }

// Close closes the engine.
func (s *Storage) Close() error { return s.engine.Close() }

// appender collects a batch and pushes it when it is committed.
type appender struct {
	ctx    context.Context
	s      *Storage
	batch  *model.Batch
	labels []labels.Labels // of each series of the batch
}

// BuildLabels returns the labels of series i to the write path.
func (p *appender) BuildLabels(i int, b *model.LabelsBuilder) {
	p.labels[i].Range(func(l labels.Label) { b.Add([]byte(l.Name), []byte(l.Value)) })
}

const nanosPerMilli = int64(time.Millisecond)

func (p *appender) Append(_ storage.SeriesRef, l labels.Labels, st, t int64, v float64,
	h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AppendV2Options,
) (storage.SeriesRef, error) {
	p.labels = append(p.labels, l)
	canonical, err := canonicalLabels(l)
	if err != nil {
		return 0, err
	}
	at, start := t*nanosPerMilli, st*nanosPerMilli
	var value *model.Histogram
	switch {
	case fh != nil:
		value = fromFloat(fh)
	case h != nil:
		value = fromInteger(h)
	}
	if value == nil {
		p.batch.Samples.Append(at, math.Float64bits(v), start)
	} else {
		p.batch.Samples.AppendBlob(at, model.KindHistogram, model.AppendHistogram(nil, value), start)
	}
	for i := range o.Exemplars {
		if err := p.exemplar(&o.Exemplars[i]); err != nil {
			return 0, err
		}
	}
	p.batch.EndSeries(canonical.Key(p.s.engine.Path().Seed(), model.Metrics))
	return 0, nil
}

func (p *appender) exemplar(e *exemplar.Exemplar) error {
	l, err := canonicalLabels(e.Labels)
	if err != nil {
		return err
	}
	blob := model.AppendExemplar(nil, &model.Exemplar{Value: math.Float64bits(e.Value), Labels: l})
	p.batch.Exemplars.AppendBlob(e.Ts*nanosPerMilli, model.KindExemplar, blob, 0)
	return nil
}

func canonicalLabels(l labels.Labels) (model.Labels, error) {
	var b model.LabelsBuilder
	l.Range(func(l labels.Label) { b.Add([]byte(l.Name), []byte(l.Value)) })
	canonical, err := b.Append(nil)
	return model.Labels(canonical), err
}

// Commit pushes the batch and moves the rows to the stage of the test.
func (p *appender) Commit() error {
	path := p.s.engine.Path()
	defer path.Recycle(p.batch)
	p.batch.Source = p
	res, err := path.Push(p.ctx, p.batch)
	if err != nil {
		return err
	}
	if len(res.Rejected) > 0 {
		return fmt.Errorf("rejected: %+v", res.Rejected)
	}
	return p.s.move(p.s.engine)
}

func (p *appender) Rollback() error {
	p.s.engine.Path().Recycle(p.batch)
	return nil
}
