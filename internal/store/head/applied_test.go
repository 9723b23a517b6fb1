package head

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// TestAwaitApplied waits for batches, for the end of a context and for the end of the head.
func TestAwaitApplied(t *testing.T) {
	r := newRig(t, nil)
	ctx := context.Background()
	r.must(r.head.AwaitApplied(ctx, 0))
	done := make(chan error, 1)
	go func() { done <- r.head.AwaitApplied(ctx, 2) }()
	b := func() *model.Batch {
		l := model.LabelsOf("__name__", "m")
		b := &model.Batch{Tenant: "a", Signal: model.Metrics}
		b.AddSample(l.Key(testSeed, model.Metrics), r.now, 1)
		b.Labels.Append(0, l)
		return b
	}
	r.head.Apply(1, b())
	select {
	case err := <-done:
		t.Fatalf("it did not wait for the second batch: %v", err)
	case <-time.After(10 * time.Millisecond):
	}
	r.head.Apply(2, b())
	r.must(<-done)
	if got := r.head.Applied(); got != 2 {
		t.Errorf("applied %d", got)
	}
	short, cancel := context.WithCancel(ctx)
	go func() { done <- r.head.AwaitApplied(short, 3) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	go func() { done <- r.head.AwaitApplied(ctx, 3) }()
	r.head.Shut()
	if err := <-done; !errors.Is(err, model.ErrClosed) {
		t.Error(err)
	}
}

// TestSourceAfter leaves out parts and runs with no later batch, and nothing else.
func TestSourceAfter(t *testing.T) {
	r := newRig(t, nil)
	ctx := context.Background()
	l := model.LabelsOf("__name__", "m")
	for seq := uint64(1); seq <= 6; seq++ {
		b := &model.Batch{Tenant: "a", Signal: model.Metrics}
		b.AddSample(l.Key(testSeed, model.Metrics), r.now+int64(seq), seq)
		b.Labels.Append(0, l)
		r.head.Apply(seq, b)
		if seq%2 == 0 && seq < 6 {
			r.must(r.head.Flush(ctx)) // a part of two batches
		}
	}
	for after, want := range []int{6, 6, 4, 4, 2, 2, 0} {
		cs, err := r.head.SourceAfter(uint64(after), nil).Select(ctx, &model.Request{
			Tenant: "a", Signal: model.Metrics, Range: model.Always(), Quota: new(model.Quota), Cost: new(model.Cost),
		})
		r.must(err)
		var rows model.Rows
		for _, c := range cs {
			for c.Next(ctx) {
				r.must(c.AppendRows(ctx, &rows))
			}
			r.must(c.Err())
			r.must(c.Close())
		}
		if rows.Len() != want {
			t.Errorf("after %d: %d rows, want %d", after, rows.Len(), want)
		}
	}
}
