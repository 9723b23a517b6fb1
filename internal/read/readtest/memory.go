package readtest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
)

// Memory is a read.Source over a map. It is safe for concurrent use.
type Memory struct {
	seq  uint64
	open atomic.Int64

	reads TextReads

	mu     sync.RWMutex
	series map[id]*series
	text   map[id]*textSeries
	fail   Failure
	// For text: lines per chunk, and chunks per page.
	chunkLines, pageChunks int
}

// Failure makes a source fail. A nil error fails nothing.
type Failure struct {
	// Calls of these kinds return Select, Next, Rows and Labels; Next and Rows only after the first series.
	// For text, Rows is returned for the list of chunks, and Text by a read of any of them.
	Select, Next, Rows, Labels, Text error
}

type id struct {
	tenant string
	signal model.Signal
	key    model.Key
}

type series struct {
	labels model.Labels
	rows   model.SeriesRows
}

// NewMemory returns an empty source whose rows have the given order.
func NewMemory(order uint64) *Memory {
	return &Memory{seq: order, series: map[id]*series{}, text: map[id]*textSeries{}, chunkLines: 5, pageChunks: 3}
}

// Fail sets how the source fails from now on.
func (m *Memory) Fail(f Failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = f
}

// Open returns the number of cursors that are not closed.
func (m *Memory) Open() int64 { return m.open.Load() }

// Add appends samples to the series with the given key in the tenant's metrics. Rows may arrive in any
// order; they become ascending and unique, as in a part.
func (m *Memory) Add(tenant string, k model.Key, l model.Labels, rows *model.Rows) {
	m.AddFamily(tenant, k, l, model.Samples, rows)
}

// AddFamily appends rows of any family in the same way.
func (m *Memory) AddFamily(tenant string, k model.Key, l model.Labels, f model.Family, rows *model.Rows) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.addLocked(id{tenant, model.Metrics, k}, l, f, rows, 0, rows.Len())
}

func (m *Memory) addLocked(at id, l model.Labels, f model.Family, rows *model.Rows, i, j int) {
	s := m.series[at]
	if s == nil {
		s = new(series)
		m.series[at] = s
	}
	if s.labels == nil {
		s.labels = slices.Clone(l)
	}
	s.rows.Family(f).AppendRows(rows, i, j)
	s.rows.Family(f).NormalizeAs(f)
}

// Apply adds a batch, as a head does.
func (m *Memory) Apply(b *model.Batch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := 0
	for i, k := range b.Keys {
		var l model.Labels
		if next < b.Labels.Len() && b.Labels.Series[next] == uint32(i) {
			l = b.Labels.At(next)
			next++
		}
		for _, f := range model.PointFamilies() {
			c := b.Columns(f)
			m.addLocked(id{b.Tenant, b.Signal, k}, l, f, &c.Rows, int(c.Begin(i)), max(int(c.Begin(i)), int(c.End(i))))
		}
		m.applyText(b, i, l)
	}
}

// MoveTo moves all series to another source.
func (m *Memory) MoveTo(o *Memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	for at, s := range m.series {
		for _, f := range model.PointFamilies() {
			o.addLocked(at, s.labels, f, s.rows.Family(f), 0, s.rows.Family(f).Len())
		}
	}
	clear(m.series)
	for at, s := range m.text {
		o.addTextLocked(at, s.labels, s.lines)
	}
	clear(m.text)
}

// Select returns one cursor.
func (m *Memory) Select(_ context.Context, req *model.Request) ([]model.Cursor, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.fail.Select != nil {
		return nil, m.fail.Select
	}
	c := &cursor{m: m, at: -1, rg: req.Range, fail: m.fail}
	if req.Signal == model.Logs {
		// Lines come from SelectText only; this returns the series without rows.
		for at, s := range m.text {
			if at.tenant == req.Tenant && at.signal == req.Signal && matches(req.Matchers, s.labels) && s.hasText(req.Range) {
				c.keys, c.series = append(c.keys, at.key), append(c.series, held{labels: s.labels})
			}
		}
	}
	for at, s := range m.series {
		if at.tenant == req.Tenant && at.signal == req.Signal && matches(req.Matchers, s.labels) && in(s.rows.Family(req.Family), req.Range) {
			c.keys = append(c.keys, at.key)
			// The rows are a copy, because the source may normalise its own rows in place later.
			h := held{}
			if !req.Unlabelled {
				h.labels = s.labels
			}
			h.rows.AppendRows(s.rows.Family(req.Family), 0, s.rows.Family(req.Family).Len())
			c.series = append(c.series, h)
		}
	}
	order := make([]int, len(c.keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return c.keys[a].Compare(c.keys[b]) })
	c.order = order
	m.open.Add(1)
	return []model.Cursor{c}, nil
}

func in(rows *model.Rows, r model.TimeRange) bool {
	return slices.ContainsFunc(rows.Times, r.Contains)
}

func matches(ms []model.Matcher, l model.Labels) bool {
	for i := range ms {
		if !ms[i].Match(string(l.Get(ms[i].Name))) {
			return false
		}
	}
	return true
}

// LabelNames emits the label names of every series that satisfies the request, with repetitions.
func (m *Memory) LabelNames(_ context.Context, req *model.Request, emit func([]byte) error) error {
	return m.walk(req, func(l model.Labels) error {
		for n, _, rest, ok := l.Next(); ok; n, _, rest, ok = rest.Next() {
			if err := emit(n); err != nil {
				return err
			}
		}
		return nil
	})
}

// LabelValues emits the value of every series that satisfies the request and has the label, with
// repetitions.
func (m *Memory) LabelValues(_ context.Context, req *model.Request, name string, emit func([]byte) error) error {
	return m.walk(req, func(l model.Labels) error {
		if v := l.Get(name); v != nil {
			return emit(v)
		}
		return nil
	})
}

func (m *Memory) walk(req *model.Request, fn func(model.Labels) error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.fail.Labels != nil {
		return m.fail.Labels
	}
	for at, s := range m.text {
		if at.tenant == req.Tenant && at.signal == req.Signal && matches(req.Matchers, s.labels) && s.hasText(req.Range) {
			if err := fn(s.labels); err != nil {
				return err
			}
		}
	}
	for at, s := range m.series {
		if at.tenant != req.Tenant || at.signal != req.Signal || !matches(req.Matchers, s.labels) ||
			!in(&s.rows.Samples, req.Range) && !in(&s.rows.Exemplars, req.Range) {
			continue
		}
		if err := fn(s.labels); err != nil {
			return err
		}
	}
	return nil
}

// held is a series with the rows of the requested family.
type held struct {
	labels model.Labels
	rows   model.Rows
}

type cursor struct {
	m      *Memory
	keys   []model.Key
	series []held
	order  []int
	at     int
	rg     model.TimeRange
	fail   Failure
	err    error
	closed bool
}

func (c *cursor) Next(ctx context.Context) bool {
	if c.err == nil {
		c.err = ctx.Err()
	}
	if c.at++; c.err == nil && c.at > 0 {
		c.err = c.fail.Next
	}
	return c.err == nil && c.at < len(c.order)
}

func (c *cursor) Key() model.Key       { return c.keys[c.order[c.at]] }
func (c *cursor) Labels() model.Labels { return c.series[c.order[c.at]].labels }
func (c *cursor) Order() uint64        { return c.m.seq }
func (c *cursor) Err() error           { return c.err }

func (c *cursor) AppendRows(_ context.Context, dst *model.Rows) error {
	if c.at > 0 && c.fail.Rows != nil {
		return c.fail.Rows
	}
	rows := &c.series[c.order[c.at]].rows
	i, n := 0, rows.Len()
	for i < n && rows.Times[i] < c.rg.Min {
		i++
	}
	j := i
	for j < n && rows.Times[j] <= c.rg.Max {
		j++
	}
	dst.AppendRows(rows, i, j)
	return nil
}

func (c *cursor) Close() error {
	if !c.closed {
		c.closed = true
		c.m.open.Add(-1)
	}
	return nil
}
