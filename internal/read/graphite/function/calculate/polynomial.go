package calculate

import (
	"github.com/shaledb/shale/internal/read/graphite/attime"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// maxDegree bounds the polynomials. Higher ones follow noise, and their sums of powers lose all digits.
const maxDegree = 20

// polyfit draws the polynomial of a degree that fits the values best, and some time beyond them.
func polyfit(c *function.Call) (any, error) {
	degree := 1
	if c.Has(1) {
		degree = int(c.Int(1))
	}
	if degree < 1 || degree > maxDegree {
		return nil, c.Errorf("degree must be from 1 to %d, found %d", maxDegree, degree)
	}
	beyond, err := attime.ParseOffset(c.Text(2))
	if err != nil {
		return nil, err
	}
	return function.Each(func(c *function.Call, s *series.Series) (*series.Series, error) {
		n := max(0, len(s.Values)+int(beyond/s.Step))
		if err := c.Charge(c, int64(n)); err != nil {
			return nil, err
		}
		name := "polyfit(" + s.Name
		if c.Has(1) || c.Has(2) {
			name += "," + series.Text(int64(degree))
		}
		if c.Has(2) {
			name += ",'" + c.Text(2) + "'"
		}
		values := series.Nulls(n)
		if p, ok := fitPolynomial(s.Values, degree); ok {
			for i := range values {
				values[i] = p.at(float64(i))
			}
		} else if series.Count(s.Values) >= 2 {
			return nil, nil // no polynomial of this degree is the best one
		}
		d := s.Derive(name+")", values)
		d.End += beyond
		return d, nil
	})(c)
}

// polynomial has coefficients for powers of (x-center)/scale, which are between -1 and 1, so that their sums
// keep their digits.
type polynomial struct {
	center, scale float64
	coefficients  []float64
}

func (p *polynomial) at(x float64) (y float64) {
	x = (x - p.center) / p.scale
	for i := len(p.coefficients) - 1; i >= 0; i-- {
		y = y*x + p.coefficients[i]
	}
	return y
}

// fitPolynomial returns the polynomial with the least squares, by the normal equations. It is false if there
// are too few values.
func fitPolynomial(values []float64, degree int) (*polynomial, bool) {
	if int(series.Count(values)) <= degree {
		return nil, false
	}
	p := &polynomial{center: float64(len(values)-1) / 2, scale: max(1, float64(len(values)-1)/2)}
	n := degree + 1
	rows := make([][]float64, n) // the matrix with the right side in the last column
	for i := range rows {
		rows[i] = make([]float64, n+1)
	}
	powers := make([]float64, 2*n)
	for i, v := range values {
		if series.IsNull(v) {
			continue
		}
		x := (float64(i) - p.center) / p.scale
		powers[0] = 1
		for k := 1; k < len(powers); k++ {
			powers[k] = powers[k-1] * x
		}
		for j, row := range rows {
			for k := range n {
				row[k] += powers[j+k]
			}
			row[n] += powers[j] * v
		}
	}
	if !eliminate(rows) {
		return nil, false
	}
	for _, row := range rows {
		p.coefficients = append(p.coefficients, row[n])
	}
	return p, true
}

// eliminate solves linear equations in place by the method of Gauss and Jordan, with the greatest pivots.
func eliminate(rows [][]float64) bool {
	for i := range rows {
		best := i
		for j := i; j < len(rows); j++ {
			if abs(rows[j][i]) > abs(rows[best][i]) {
				best = j
			}
		}
		rows[i], rows[best] = rows[best], rows[i]
		pivot := rows[i][i]
		if abs(pivot) < 1e-12 {
			return false
		}
		for k := i; k < len(rows[i]); k++ {
			rows[i][k] /= pivot
		}
		for j := range rows {
			if factor := rows[j][i]; j != i && factor != 0 {
				for k := i; k < len(rows[j]); k++ {
					rows[j][k] -= factor * rows[i][k]
				}
			}
		}
	}
	return true
}

func abs(v float64) float64 { return max(v, -v) }
