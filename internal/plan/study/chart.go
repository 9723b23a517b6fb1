package study

import "github.com/shaledb/shale/internal/plot"

// Chart draws the requests to the bucket over the size, one curve a policy.
func (r *Report) Chart() string {
	c := plot.Sizes{Title: "Requests to the bucket: " + r.Trace, Unit: "GET a second"}
	index := map[string]int{}
	for _, row := range r.Rows {
		i, ok := index[row.Policy]
		if !ok {
			i = len(c.Curves)
			index[row.Policy] = i
			c.Curves = append(c.Curves, plot.Curve{Name: row.Policy})
		}
		c.Curves[i].Points = append(c.Curves[i].Points, [2]float64{row.Bytes, row.Gets})
	}
	return c.SVG()
}
