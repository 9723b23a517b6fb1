package window

import (
	"time"

	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// Aggregation says what is made of the samples of a window.
type Aggregation struct {
	Op       syntax.RangeOp
	Unwrap   bool    // samples have values; else lines or bytes are counted
	Quantile float64 // of quantile_over_time
	Width    int64   // of the window, in nanoseconds
}

// Counts reports whether the aggregation needs nothing but counts of lines or bytes. Its series are [Count].
func (a Aggregation) Counts() bool {
	switch a.Op {
	case syntax.CountOverTime, syntax.BytesOverTime, syntax.BytesRate, syntax.AbsentOverTime:
		return true
	case syntax.Rate:
		return !a.Unwrap
	}
	return false
}

// New returns a series without samples.
func (a Aggregation) New(c *Cells) Series {
	switch a.Op {
	case syntax.SumOverTime:
		return newAggregate[total](c, 1)
	case syntax.AvgOverTime:
		return newAggregate[mean](c, 1)
	case syntax.MinOverTime:
		return newAggregate[least](c, 1)
	case syntax.MaxOverTime:
		return newAggregate[most](c, 1)
	case syntax.StdvarOverTime:
		return newAggregate[variance](c, 1)
	case syntax.StddevOverTime:
		return newAggregate[deviation](c, 1)
	case syntax.FirstOverTime:
		return newAggregate[earliest](c, 1)
	case syntax.LastOverTime:
		return newAggregate[latest](c, 1)
	case syntax.QuantileOverTime:
		return &quantile{kept: kept[quantileSample]{of: c}, q: a.Quantile}
	case syntax.RateCounter:
		return &counter{kept: kept[counterSample]{of: c}, width: a.Width}
	case syntax.Rate:
		if a.Unwrap {
			return newAggregate[total](c, seconds(a.Width))
		}
	}
	return &a.NewCounts(c, 1)[0]
}

func newAggregate[P any, M partial[P]](c *Cells, divisor float64) Series {
	return &aggregate[P, M]{track[P]{of: c}, divisor}
}

func seconds(width int64) float64 { return time.Duration(width).Seconds() }
