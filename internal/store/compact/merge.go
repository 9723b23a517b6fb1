package compact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
	"github.com/shaledb/shale/internal/store/retention"
)

// merge is a job that is running.
type merge struct {
	c   *Compactor
	ctx context.Context
	job *job

	// deletions are applied to the rows, up to generation.
	deletions  catalog.Deletions
	generation uint64
	// rules say how long rows are kept, and expired is the time by which they expire.
	rules   *retention.Rules
	expired int64
	// keepsRows says that expired rows of metrics stay until their block expires.
	keepsRows bool
	// The common properties of the new blocks.
	ids              []string // of the inputs
	sources          []catalog.Source
	orderLo, orderHi uint64
	created          int64

	// weights estimates the bytes of each tenant, and small is the most that a tenant may have to share a block.
	weights map[string]float64
	small   float64

	// base and policies are of the rollups that are being made.
	base, policies string

	all     []*cellOutput
	cells   []*cellOutput    // of the pass
	tenant  string           // of the current series
	policy  retention.Policy // of the tenant
	open    map[*blockWriter]bool
	blocks  []catalog.Block
	uploads []func()

	// reading is the block that is being read, or "". A panic is blamed on it. If lines cannot be read, their
	// block stays here, and is blamed for the error, too.
	reading string
}

// run merges the inputs of a job, commits the result and returns it. Without an error the inputs are no
// longer visible.
func (c *Compactor) run(ctx context.Context, j *job, deletions catalog.Deletions) (made []catalog.Block, err error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, maxMergeTime)
	defer cancel()
	m, err := c.begin(ctx, j, deletions)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.end()) }()
	var need int64
	for i := range j.inputs {
		need += j.inputs[i].Bytes
	}
	release, err := c.o.Room(need)
	if err != nil {
		return nil, fmt.Errorf("%d bytes of temporary files: %w", need, err)
	}
	defer release()
	work := m.merge
	if c.o.Predict != nil {
		work = m.predict
	}
	if err := m.caught(work); err != nil {
		return nil, err
	}
	// The clock of the context stops while the machine sleeps, and deletions may be collected in the meantime.
	if took := time.Now().Round(0).Sub(began.Round(0)); took > maxMergeTime {
		return nil, fmt.Errorf("%w: the merge took %s, at most %s", model.ErrTransient, took, maxMergeTime)
	}
	// A faster compactor has probably committed by now; otherwise this merge has only cost work.
	if err := c.o.Catalog.Refresh(ctx); err != nil {
		return nil, err
	}
	if err := c.o.Catalog.Replace(ctx, m.ids, m.blocks); err != nil {
		return nil, err
	}
	c.metrics.blocksIn.Add(float64(len(m.ids)))
	c.metrics.blocksOut.Add(float64(len(m.blocks)))
	return m.blocks, nil
}

// begin returns the merge of a job. Whoever calls it calls end.
func (c *Compactor) begin(ctx context.Context, j *job, deletions catalog.Deletions) (m *merge, err error) {
	err = model.Caught(func() error { m = c.newMerge(ctx, j, deletions); return nil })
	return m, err
}

// caught runs work of the merge that changes nothing but the merge: until its commit, it has only made files
// and objects of its own. So a panic is an error, and blamed on the block that was being read, if any.
func (m *merge) caught(work func() error) error {
	err := model.Caught(work)
	var blames *inputError
	if err != nil && m.reading != "" && !errors.As(err, &blames) {
		return &inputError{m.reading, err}
	}
	return err
}

// end deletes the files that are left. From then on, an object that was not committed is an orphan.
func (m *merge) end() (err error) {
	for b := range m.open {
		err = errors.Join(err, b.abandon())
	}
	for _, done := range m.uploads {
		done()
	}
	return err
}

func (c *Compactor) newMerge(ctx context.Context, j *job, deletions catalog.Deletions) *merge {
	m := &merge{
		c: c, ctx: ctx, job: j, weights: make(map[string]float64),
		small: c.o.BigTenantShare * float64(c.o.MaxBlockBytes), open: make(map[*blockWriter]bool),
		rules: c.o.Retention(), orderLo: j.inputs[0].OrderLo, created: j.inputs[0].Created,
	}
	// All deletions up to the greatest generation of any input or deletion are known: see catalog.Refresh.
	m.deletions, _, m.generation = split(j.inputs, deletions, c.o.Now())
	for i := range j.inputs {
		b := &j.inputs[i]
		m.ids = append(m.ids, b.ID)
		m.orderLo, m.orderHi = min(m.orderLo, b.OrderLo), max(m.orderHi, b.OrderHi)
		m.created = max(m.created, b.Created)
		m.sources = append(m.sources, b.Sources...)
	}
	m.sources = joinSources(m.sources)
	m.expired, m.keepsRows = c.expiryTime(), c.keepsRows()
	m.layOut(j.cells)
	return m
}

// layOut makes an output for each cell or, once its day is over, for each retention group of it.
func (m *merge) layOut(cells []cell) {
	for _, cell := range cells {
		keeps := m.rules.Keeps()
		if cell.level < catalog.Settled || len(keeps) == 0 {
			m.all = append(m.all, &cellOutput{cell: cell, group: catalog.DefaultGroup, begins: true})
			continue
		}
		for i, keep := range keeps {
			m.all = append(m.all, &cellOutput{cell: cell, keep: keep, group: m.rules.Group(keep), begins: i == 0})
		}
	}
}

// joinSources joins the sources of the same journal.
func joinSources(all []catalog.Source) []catalog.Source {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b catalog.Source) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.SeqLo, b.SeqLo))
	})
	var joined []catalog.Source
	for _, s := range all {
		if n := len(joined); n > 0 && joined[n-1].Epoch == s.Epoch && joined[n-1].Node == s.Node {
			joined[n-1].SeqHi = max(joined[n-1].SeqHi, s.SeqHi)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// maskWindow is the length of a window in the masks of a day's block: that of the head's windows.
const maskWindow = 2 * time.Hour

// writerOptions describes a block of a cell. The same inputs give the same bytes.
func (m *merge) writerOptions(c *cell) part.WriterOptions {
	o := part.WriterOptions{
		Seed: m.c.o.Seed, Signal: m.job.inputs[0].Signal, Level: part.Dense, Labels: true, Created: m.created, Plain: m.c.o.Plain, Workers: m.c.o.Workers,
	}
	for _, s := range m.sources {
		o.Sources = append(o.Sources, part.Source(s))
	}
	if c.wholeDay() {
		o.Windows = part.Windows{Start: c.Min, Length: int64(maskWindow), Count: int(day / maskWindow)}
	}
	return o
}

// merge writes and uploads the blocks: those of all cells in one pass if memory allows, otherwise in several
// passes.
func (m *merge) merge() error {
	costs, err := m.weigh(m.window(len(chains(m.job.inputs))))
	if err != nil {
		return err
	}
	if r, all := rangeOf(m.job.inputs), rangeOfCells(m.all); r.Min <= r.Max && (r.Min < all.Min || r.Max > all.Max) {
		return fmt.Errorf("%w: rows from %d to %d exceed the cells from %d to %d", model.ErrInvalid, r.Min, r.Max, all.Min, all.Max)
	}
	for _, cells := range passes(m.all, costs, m.c.o.MemoryBytes) {
		if err := m.pass(cells); err != nil {
			return err
		}
	}
	return nil
}

// weigh estimates the size of each tenant and returns the cost of each cell. It reads the directory of each
// input, which is one small read.
func (m *merge) weigh(most int64) ([]int64, error) {
	// A series costs about as much as seriesSamples samples: its key, its labels, its postings. lineBytes
	// bytes of lines cost about as much as one sample.
	const seriesSamples, lineBytes = 20, 16
	costs := make([]cellCost, len(m.all))
	for i := range m.job.inputs {
		b := &m.job.inputs[i]
		r, err := m.reader(m.ctx, b, most)
		if err != nil {
			return nil, err
		}
		tenants := r.Meta().Tenants
		for k, out := range m.all {
			costs[k].count(out.TimeRange, tenants)
		}
		size := func(samples, lines uint64, series float64) float64 {
			return float64(samples) + float64(lines)/lineBytes + seriesSamples*series
		}
		total := size(b.Samples, r.Meta().TextBytes, float64(b.Series))
		for k := range tenants {
			t := &tenants[k]
			m.weights[t.Name] += float64(b.Bytes) * size(t.Samples, t.TextBytes, float64(t.Series)) / max(total, 1)
		}
	}
	bytes := make([]int64, len(costs))
	for k := range costs {
		if !m.all[k].begins { // the groups of a cell share no series
			costs[k].series = 0
		}
		bytes[k] = costs[k].bytes(len(m.weights))
	}
	return bytes, nil
}

// add distributes the rows of a merged series over the cells of the pass.
func (m *merge) add(tenant string, k model.Key, l model.Labels, rows *model.SeriesRows, text []part.Text) error {
	if tenant != m.tenant {
		if err := m.endTenant(); err != nil {
			return err
		}
		m.tenant, m.policy = tenant, m.rules.Policy(tenant, m.job.inputs[0].Signal)
	}
	if l == nil {
		return fmt.Errorf("%w: tenant %q: key %s has rows but no labels", model.ErrCorrupt, tenant, k)
	}
	keep := m.policy.Keep(l)
	for _, f := range model.PointFamilies() {
		from := rows.Family(f)
		i, _ := slices.BinarySearch(from.Times, m.cells[0].Min)
		for _, out := range m.cells {
			if !out.takes(keep) {
				continue
			}
			j := i
			for j < from.Len() && from.Times[j] <= out.Max {
				j++
			}
			if j > i {
				out.rows.Family(f).AppendRows(from, i, j)
			}
			i = j
		}
	}
	for _, out := range m.cells {
		if !out.takes(keep) {
			continue
		}
		some, err := part.HasText(m.ctx, text, out.TimeRange)
		if err != nil {
			return classed(err)
		}
		if out.rows.Len() == 0 && !some {
			continue
		}
		w, err := m.writer(out, tenant)
		if err != nil {
			return err
		}
		err = w.add(tenant, k, l, &out.rows)
		if err == nil && some {
			err = w.w.Text(m.ctx, text, out.TimeRange)
		}
		if err != nil {
			return classed(err)
		}
		out.rows.Reset()
	}
	return nil
}

// writer returns the block for the next series of a tenant.
func (m *merge) writer(out *cellOutput, tenant string) (*blockWriter, error) {
	weight, most := m.weights[tenant], m.c.o.MaxBlockBytes
	at, cut := &out.shared, false
	if weight > m.small {
		at = &out.own
	}
	switch w := *at; {
	case w == nil:
	case at == &out.own:
		cut = w.full(most)
	case w.tenant != tenant:
		// Shared blocks are cut between tenants, so that blocks of one merge share no tenant,
		cut = w.full(most - int64(weight))
	default:
		// or where a tenant turns out to be much larger than its weight.
		cut = w.full(2 * most)
	}
	if cut {
		w := *at
		*at = nil
		if err := w.finish(m.ctx); err != nil {
			return nil, err
		}
	}
	if *at != nil {
		return *at, nil
	}
	var err error
	*at, err = m.create(out)
	return *at, err
}

// endTenant finishes the blocks that hold the last tenant only.
func (m *merge) endTenant() error {
	for _, out := range m.cells {
		if w := out.own; w != nil {
			out.own = nil
			if err := w.finish(m.ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
