package query

import (
	"context"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/labels"
)

// partNames are the names of a label part, which has no times. Errors name the part.
type partNames struct {
	model.NameSet
	wrap func(error) error
}

// Range is [model.NameSet.Range].
func (n *partNames) Range() model.TimeRange {
	return model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64}
}

// Walk is [model.NameSet.Walk].
func (n *partNames) Walk(ctx context.Context) model.NameWalk {
	return &partNameWalk{n.NameSet.Walk(ctx), n.wrap}
}

type partNameWalk struct {
	model.NameWalk
	wrap func(error) error
}

// Err is [model.NameWalk.Err].
func (w *partNameWalk) Err() error { return w.wrap(w.NameWalk.Err()) }

// runNames are the names of buffered label sets, which are in the order of keys.
type runNames struct{ entries []labels.Entry }

// Range is [model.NameSet.Range].
func (n runNames) Range() model.TimeRange {
	return model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64}
}

// Walk is [model.NameSet.Walk].
func (n runNames) Walk(context.Context) model.NameWalk { return nil }

// Each is [model.NameSet.Each].
func (n runNames) Each(ctx context.Context, emit func(name []byte) error) error {
	for i := range n.entries {
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if name := n.entries[i].Labels().LoneName(); name != nil {
			if err := emit(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Made is [model.NameSet.Made]: nothing is kept.
func (n runNames) Made(context.Context, func(context.Context) ([]byte, error)) ([]byte, error) {
	return nil, nil
}
