package read

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/sketch"
)

// LabelCounter is a source that knows how many series have each label without looking at each series.
type LabelCounter interface {
	// LabelCounts emits labels of the series that satisfy the matchers, of one name or of all if it is empty,
	// in any order. A label may come several times, with a part of its series each. It returns how many
	// series there are.
	LabelCounts(ctx context.Context, req *model.Request, name string, emit func(name, value []byte, series uint64) error) (uint64, error)
}

// maxPairs is the number of labels whose series are counted exactly.
const maxPairs = 100_000

// Cardinality counts series by their labels. It takes bounded memory, which is charged to the request, and is
// exact for up to 100,000 labels, names with their values, with up to 1,024 values each.
type Cardinality struct {
	// Series is the number of series.
	Series uint64

	quota   *model.Quota
	charged int64
	pairs   *sketch.Frequent
	names   map[string]*nameCount
	pair    []byte
}

// nameCount is what is known of a label name.
type nameCount struct {
	series, bytes uint64
	values        sketch.Distinct
}

// LabelCount describes a label name: how many series have it, how many values it has, and how many bytes
// these take in all series together.
type LabelCount struct {
	Name                       string
	Series, Values, ValueBytes uint64
	// Exact says that Values is; otherwise it has [sketch.StandardError].
	Exact bool
}

// pairSeparator separates name and value. Both may hold any UTF-8, in which this byte never occurs.
const pairSeparator = 0xff

// nameBytes estimates what a label name takes, apart from its text and its values.
const nameBytes = 128

// CountLabels counts the series that a source knows, by the labels of one name, or by all if it is empty.
func CountLabels(ctx context.Context, src LabelCounter, req *model.Request, name string) (c *Cardinality, err error) {
	c = newCardinality(req.Quota)
	tick := 0
	c.Series, err = src.LabelCounts(ctx, req, name, func(n, value []byte, series uint64) error {
		if tick++; tick%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return c.add(n, value, series)
	})
	if err != nil {
		c.Release()
		return nil, err
	}
	return c, nil
}

// Cardinality counts the series that a request selects, each once, by the labels of one name, or by all if it
// is empty. It looks at each series.
func (q *Querier) Cardinality(ctx context.Context, req *model.Request, name string) (*Cardinality, error) {
	r := *req
	r.LabelsOnly = true
	set, err := q.selectSeries(ctx, &r) // looking at what there is does not use it
	if err != nil {
		return nil, err
	}
	defer set.Close()
	c := newCardinality(req.Quota)
	for set.Next(ctx) {
		c.Series++
		for n, v, rest, ok := set.Labels().Next(); ok && err == nil; n, v, rest, ok = rest.Next() {
			if name == "" || string(n) == name {
				err = c.add(n, v, 1)
			}
		}
		if err != nil {
			break
		}
		_ = c.quota.TakeBytes(-set.Charged()) // the series is not kept
	}
	if err = cmp.Or(err, set.Err()); err != nil {
		c.Release()
		return nil, err
	}
	return c, nil
}

func newCardinality(quota *model.Quota) *Cardinality {
	if quota == nil {
		quota = new(model.Quota)
	}
	return &Cardinality{quota: quota, pairs: sketch.NewFrequent(maxPairs), names: map[string]*nameCount{}}
}

// Release gives back what was charged.
func (c *Cardinality) Release() {
	_ = c.quota.TakeBytes(-c.charged) // giving back never fails
	c.charged = 0
}

func (c *Cardinality) add(name, value []byte, series uint64) error {
	n := c.names[string(name)]
	before := c.pairs.Bytes()
	if n == nil {
		n = new(nameCount)
		c.names[string(name)] = n
		before -= int64(len(name)) + nameBytes
	}
	before += n.values.Bytes()
	n.series += series
	n.bytes += uint64(len(value)) * series
	n.values.Add(value)
	c.pair = append(append(append(c.pair[:0], name...), pairSeparator), value...)
	c.pairs.Add(c.pair, series)
	more := c.pairs.Bytes() + n.values.Bytes() - before
	if more == 0 {
		return nil
	}
	if err := c.quota.TakeBytes(more); err != nil {
		return err
	}
	c.charged += more
	return nil
}

// Undercount is what the number of series of any label may be too low by; 0: all are exact.
func (c *Cardinality) Undercount() uint64 { return c.pairs.Undercount() }

// Pairs returns the number of different labels.
func (c *Cardinality) Pairs() (n uint64) {
	for _, name := range c.names {
		n += name.values.Count()
	}
	return n
}

// Values returns the number of different values of a label, and whether it is exact.
func (c *Cardinality) Values(name string) (n uint64, exact bool) {
	if of := c.names[name]; of != nil {
		return of.values.Count(), of.values.Exact()
	}
	return 0, true
}

// SeriesByValue returns the values of a label that have most series, at most limit of them.
func (c *Cardinality) SeriesByValue(name string, limit int) []sketch.Counted {
	var all []sketch.Counted
	c.eachValue(name, func(value string, n uint64) { all = append(all, sketch.Counted{Name: value, Count: n}) })
	return sketch.Most(all, limit)
}

// SeriesByPair returns the labels that most series have, each written name=value.
func (c *Cardinality) SeriesByPair(limit int) []sketch.Counted {
	most := c.pairs.Most(limit)
	for i := range most {
		most[i].Name = strings.Replace(most[i].Name, "\xff", "=", 1)
	}
	return most
}

// eachValue calls do with the known values of a label, or with all labels, written name=value, if name is
// empty.
func (c *Cardinality) eachValue(name string, do func(value string, series uint64)) {
	c.pairs.Each(func(pair string, n uint64) {
		of, value, _ := strings.Cut(pair, "\xff")
		switch {
		case name == "":
			do(of+"="+value, n)
		case of == name:
			do(value, n)
		}
	})
}

// Labels returns the label names in the order of a key, greatest first, then by name, at most limit of them.
func (c *Cardinality) Labels(limit int, key func(*LabelCount) uint64) []LabelCount {
	all := make([]LabelCount, 0, len(c.names))
	for name, n := range c.names {
		all = append(all, LabelCount{Name: name, Series: n.series, Values: n.values.Count(), ValueBytes: n.bytes, Exact: n.values.Exact()})
	}
	slices.SortFunc(all, func(a, b LabelCount) int {
		return cmp.Or(cmp.Compare(key(&b), key(&a)), strings.Compare(a.Name, b.Name))
	})
	return all[:min(limit, len(all))]
}

// Change is a name with its count before and now.
type Change struct {
	Name        string
	Before, Now uint64
}

// Changes returns the values of a label, or the labels if it is empty, whose number of series has changed
// most since before, at most limit of them. A number may be too low by the sum of both undercounts.
func (c *Cardinality) Changes(before *Cardinality, name string, limit int) []Change {
	of := map[string]*Change{}
	at := func(value string) *Change {
		x := of[value]
		if x == nil {
			x = &Change{Name: value}
			of[value] = x
		}
		return x
	}
	before.eachValue(name, func(value string, n uint64) { at(value).Before = n })
	c.eachValue(name, func(value string, n uint64) { at(value).Now = n })
	return mostChanged(of, limit)
}

// LabelChanges is Changes of the number of values of label names.
func (c *Cardinality) LabelChanges(before *Cardinality, limit int) []Change {
	of := map[string]*Change{}
	for name, n := range before.names {
		of[name] = &Change{Name: name, Before: n.values.Count()}
	}
	for name, n := range c.names {
		if of[name] == nil {
			of[name] = &Change{Name: name}
		}
		of[name].Now = n.values.Count()
	}
	return mostChanged(of, limit)
}

func mostChanged(of map[string]*Change, limit int) []Change {
	var all []Change
	for _, x := range of {
		if x.Before != x.Now {
			all = append(all, *x)
		}
	}
	by := func(x *Change) uint64 { return max(x.Now, x.Before) - min(x.Now, x.Before) }
	slices.SortFunc(all, func(a, b Change) int {
		return cmp.Or(cmp.Compare(by(&b), by(&a)), strings.Compare(a.Name, b.Name))
	})
	return all[:min(limit, len(all))]
}
