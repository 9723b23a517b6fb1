package promqltest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/promql"
)

var errUnsupported = errors.New("not supported")

// adapter is an engine as upstream's storage.
type adapter struct {
	engine Engine
	move   func(Engine) error
}

var _ storage.Storage = (*adapter)(nil)

func (a *adapter) Querier(mint, maxt int64) (storage.Querier, error) {
	q := promql.Queryable{
		Read: a.engine.Querier(), Tenant: model.DefaultTenant, Quota: new(model.Quota), Cost: new(model.Cost),
	}
	return q.Querier(mint, maxt)
}

func (a *adapter) ChunkQuerier(int64, int64) (storage.ChunkQuerier, error) {
	return nil, fmt.Errorf("chunk querier: %w", errUnsupported)
}

// Appender is the older of upstream's interfaces; the test language writes through AppenderV2.
func (a *adapter) Appender(context.Context) storage.Appender { return nil }

func (a *adapter) AppenderV2(ctx context.Context) storage.AppenderV2 {
	return &appender{ctx: ctx, a: a, batch: a.engine.Path().Batch(model.DefaultTenant, model.Metrics)}
}

func (a *adapter) StartTime() (int64, error) { return 0, nil }

func (a *adapter) Close() error { return a.engine.Close() }

// appender collects a batch and pushes it when it is committed.
type appender struct {
	ctx    context.Context
	a      *adapter
	batch  *model.Batch
	labels []labels.Labels // of each series of the batch
}

// BuildLabels gives the write path the labels of series i.
func (p *appender) BuildLabels(i int, b *model.LabelsBuilder) {
	p.labels[i].Range(func(l labels.Label) { b.Add([]byte(l.Name), []byte(l.Value)) })
}

func (p *appender) Append(_ storage.SeriesRef, l labels.Labels, st, t int64, v float64,
	h *histogram.Histogram, fh *histogram.FloatHistogram, _ storage.AppendV2Options,
) (storage.SeriesRef, error) {
	if h != nil || fh != nil {
		return 0, fmt.Errorf("histograms: %w", errUnsupported)
	}
	p.labels = append(p.labels, l)
	var b model.LabelsBuilder
	p.BuildLabels(len(p.labels)-1, &b)
	canonical, err := b.Append(nil)
	if err != nil {
		return 0, err
	}
	ms := int64(time.Millisecond)
	p.batch.Samples.Append(t*ms, math.Float64bits(v), st*ms)
	p.batch.EndSeries(model.Labels(canonical).Key(p.a.engine.Path().Seed(), model.Metrics))
	return 0, nil
}

// Commit pushes the batch and moves the rows to where the test wants them.
func (p *appender) Commit() error {
	path := p.a.engine.Path()
	defer path.Recycle(p.batch)
	p.batch.Source = p
	res, err := path.Push(p.ctx, p.batch)
	if err != nil {
		return err
	}
	if len(res.Rejected) > 0 {
		return fmt.Errorf("rejected: %+v", res.Rejected)
	}
	return p.a.move(p.a.engine)
}

func (p *appender) Rollback() error {
	p.a.engine.Path().Recycle(p.batch)
	return nil
}
