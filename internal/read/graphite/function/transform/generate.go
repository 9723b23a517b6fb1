package transform

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// generate returns a series with a value for each step of the window.
func generate(c *function.Call, name string, step int64, f func(at int64) float64) (any, error) {
	if step <= 0 {
		return nil, c.Errorf("expected a step of at least 1, found %d", step)
	}
	n := max(0, (c.Until-c.From+step-1)/step) // linearRegression may ask for a window that ends before it begins
	if n > maxBuckets {
		return nil, fmt.Errorf("%w: %s: a step of %d s makes %d values, more than %d", model.ErrInvalid, c.Function.Name, step, n, maxBuckets)
	}
	if err := c.Charge(c, n); err != nil {
		return nil, err
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = f(c.From + int64(i)*step)
	}
	return series.List{series.New(name, c.From, c.Until, step, out, c.XFF)}, nil
}

func timeLine(c *function.Call) (any, error) {
	return generate(c, c.Text(0), c.Int(1), func(at int64) float64 { return float64(at) })
}

func sine(c *function.Call) (any, error) {
	amplitude := c.Number(1)
	return generate(c, c.Text(0), c.Int(2), func(at int64) float64 { return math.Sin(float64(at)) * amplitude })
}

func randomWalk(c *function.Call) (any, error) {
	current := 0.0
	return generate(c, c.Text(0), c.Int(1), func(int64) float64 {
		v := current
		current += rand.Float64() - 0.5
		return v
	})
}

// identity is time with a step of a minute.
func identity(c *function.Call) (any, error) {
	made, err := generate(c, c.Text(0), 60, func(at int64) float64 { return float64(at) })
	if err != nil {
		return nil, err
	}
	made.(series.List)[0].Path = `identity("` + c.Text(0) + `")`
	return made, nil
}
