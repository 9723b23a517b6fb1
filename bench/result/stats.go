package result

import "slices"

// Stat is a figure over several runs.
type Stat struct {
	N                   int
	Median, Least, Most float64
}

// StatOf returns the median and the range of values. The median of an even number is the mean of the middle
// two.
func StatOf(values []float64) Stat {
	n := len(values)
	if n == 0 {
		return Stat{}
	}
	v := slices.Sorted(slices.Values(values))
	return Stat{n, (v[(n-1)/2] + v[n/2]) / 2, v[0], v[n-1]}
}

// Quantile returns the measured value below which a share q of the values lies, and 0 without values.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	return v[min(len(v)-1, int(q*float64(len(v))))]
}

// Group is all runs of a load against one system.
type Group struct {
	Load, System, Version string
	Records               []Record
}

// Groups groups records by load and system, both in the order of their first record.
func Groups(records []Record) (groups []*Group) {
	for _, r := range records {
		i := slices.IndexFunc(groups, func(g *Group) bool { return g.Load == r.Load && g.System == r.System })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &Group{Load: r.Load, System: r.System, Version: r.Version})
		}
		groups[i].Records = append(groups[i].Records, r)
	}
	return groups
}

// Stat returns a figure of the group, over the runs that have it.
func (g *Group) Stat(name string) Stat {
	var values []float64
	for _, r := range g.Records {
		if v, ok := r.Values[name]; ok {
			values = append(values, v)
		}
	}
	return StatOf(values)
}

// failed counts the runs that ended with an error.
func (g *Group) failed() (n int, last string) {
	for _, r := range g.Records {
		if r.Error != "" {
			n, last = n+1, r.Error
		}
	}
	return n, last
}
