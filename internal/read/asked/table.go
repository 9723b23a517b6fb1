package asked

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/dayfile"
	"github.com/shaledb/shale/internal/model"
)

const (
	// Days is how long a metric must not have been asked for to be unused.
	Days = 30
	// maxNames bounds the metrics and label names of all tenants together, about 20 MB, and maxOfTenant those
	// of one.
	maxNames, maxOfTenant = 200_000, 20_000
	// maxSelectors bounds the selectors of a tenant that name no metric, or several.
	maxSelectors = 256
	// maxText bounds such a selector.
	maxText = 4 << 10
	// SaveEvery is how much a kill may lose.
	SaveEvery = time.Minute
)

// Options build a Table.
type Options struct {
	FS         vfs.FS
	Dir        string       // empty: nothing is kept
	Now        func() int64 // in Unix nanoseconds; nil: the clock of the machine
	Registerer prometheus.Registerer
	Logger     *slog.Logger // nil: no log
}

// Table has the days. It is safe for concurrent use.
type Table struct {
	o      Options
	folder dayfile.Folder
	saved  prometheus.Gauge
	saving sync.Mutex // one writer of the file at a time; taken before mu

	mu      sync.Mutex
	state   state
	names   int
	unsaved bool
}

// state is the document in the file.
type state struct {
	// Began is the day since which queries are seen.
	Began   string             `json:"began"`
	Tenants map[string]*tenant `json:"tenants"`
	// Full is the day on which there was no room for a tenant last.
	Full string `json:"full,omitempty"`
}

// tenant has days by name.
type tenant struct {
	Metrics map[string]string `json:"metrics,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Selectors are those that name no metric, or several, by their text.
	Selectors map[string]*Selector `json:"selectors,omitempty"`
	// Full is the day on which there was no room last.
	Full string `json:"full,omitempty"`
}

// Selector is a selector that names no metric, or several.
type Selector struct {
	Matchers []Matcher `json:"matchers"`
	Day      string    `json:"day"`
}

// Matcher is a matcher without its function.
type Matcher struct {
	Name  string        `json:"name"`
	Op    model.MatchOp `json:"op"`
	Value string        `json:"value"`
}

// Open returns the table of a folder. A file that cannot be read does not prevent a start: then the days
// begin again, and nothing is unused for a while.
func Open(o Options) *Table {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Table{o: o, folder: dayfile.Folder{FS: o.FS, Dir: o.Dir, Days: 2}}
	f := promauto.With(o.Registerer)
	t.saved = f.NewGauge(prometheus.GaugeOpts{Name: "shale_asked_save_success", Help: "1 if the record of what queries asked for was last saved without an error; while it is 0, a restart loses what came since."})
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_asked_names", Help: "Metrics and label names whose last use by a query is recorded."}, func() float64 {
		t.mu.Lock()
		defer t.mu.Unlock()
		return float64(t.names)
	})
	t.saved.Set(1)
	if err := t.load(); err != nil {
		o.Logger.Error("cannot read what queries asked for; recording starts again, and nothing is called unused for 30 days", "err", err)
		t.state = state{}
	}
	if t.state.Began == "" {
		t.state.Began = dayfile.Day(o.Now())
	}
	if t.state.Tenants == nil {
		t.state.Tenants = map[string]*tenant{}
	}
	for _, of := range t.state.Tenants {
		t.names += len(of.Metrics) + len(of.Labels)
	}
	return t
}

// load reads the newest file.
func (t *Table) load() error {
	if t.o.Dir == "" {
		return nil
	}
	days, err := t.folder.List()
	if errors.Is(err, os.ErrNotExist) || err == nil && len(days) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return t.folder.Load(days[len(days)-1], &t.state)
}

// Selected notes a selector of metrics of a query.
func (t *Table) Selected(name string, ms []model.Matcher) {
	t.mu.Lock()
	defer t.mu.Unlock()
	today := dayfile.Day(t.o.Now())
	of := t.ofLocked(name)
	if of == nil {
		return
	}
	metric := ""
	for i := range ms {
		m := &ms[i]
		if m.Name != model.NameLabel {
			t.noteLocked(of, &of.Labels, m.Name, today)
		} else if m.Op == model.MatchEqual {
			metric = m.Value
		}
	}
	if metric != "" {
		t.noteLocked(of, &of.Metrics, metric, today)
		return
	}
	t.selectorLocked(of, ms, today)
}

// Named notes label names that a query needs besides those in its selectors, such as those that it groups by.
func (t *Table) Named(name string, labels ...string) {
	if len(labels) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	today := dayfile.Day(t.o.Now())
	if of := t.ofLocked(name); of != nil {
		for _, l := range labels {
			t.noteLocked(of, &of.Labels, l, today)
		}
	}
}

// ofLocked returns the days of a tenant, or nil if there is no room for one more.
func (t *Table) ofLocked(name string) *tenant {
	of := t.state.Tenants[name]
	if of == nil && t.names < maxNames && len(t.state.Tenants) < maxNames/20 {
		of = &tenant{}
		t.state.Tenants[name] = of
		t.unsaved = true
	}
	if of == nil {
		if today := dayfile.Day(t.o.Now()); t.state.Full != today {
			t.state.Full, t.unsaved = today, true
		}
	}
	return of
}

func (t *Table) noteLocked(of *tenant, days *map[string]string, name, today string) {
	day, known := (*days)[name]
	switch {
	case day == today:
		return
	case known:
	case t.names >= maxNames || len(of.Metrics)+len(of.Labels) >= maxOfTenant:
		t.fullLocked(of, today)
		return
	default:
		t.names++
		name = strings.Clone(name)
	}
	if *days == nil {
		*days = map[string]string{}
	}
	(*days)[name] = today
	t.unsaved = true
}

func (t *Table) fullLocked(of *tenant, today string) {
	if of.Full != today {
		of.Full, t.unsaved = today, true
	}
}

func (t *Table) selectorLocked(of *tenant, ms []model.Matcher, today string) {
	var text strings.Builder
	s := &Selector{Day: today}
	for i := range ms {
		m := Matcher{strings.Clone(ms[i].Name), ms[i].Op, strings.Clone(ms[i].Value)}
		fmt.Fprintf(&text, "%q %d %q ", m.Name, m.Op, m.Value)
		s.Matchers = append(s.Matchers, m)
	}
	known := of.Selectors[text.String()]
	switch {
	case known != nil && known.Day == today:
	case known != nil:
		known.Day, t.unsaved = today, true
	case len(of.Selectors) >= maxSelectors || text.Len() > maxText:
		t.fullLocked(of, today)
	default:
		if of.Selectors == nil {
			of.Selectors = map[string]*Selector{}
		}
		of.Selectors[text.String()], t.unsaved = s, true
	}
}

// Seen is what is known of the queries of a tenant in the last [Days] days.
type Seen struct {
	// Since is the day from which queries were seen, within the last Days.
	Since string
	// Days are the days until today from which they were seen.
	Days int
	// Full says that there was no room for all that was asked for.
	Full bool
	// Metrics and Labels have the names that were asked for.
	Metrics, Labels map[string]bool
	// Selectors select further metrics.
	Selectors [][]model.Matcher
}

// Look returns what the queries of a tenant have asked for. A tenant without queries has asked for nothing.
func (t *Table) Look(name string) Seen {
	now := t.o.Now()
	from := dayfile.Day(now - int64(Days)*int64(24*time.Hour))
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Seen{Since: max(from, t.state.Began), Full: t.state.Full >= from, Metrics: map[string]bool{}, Labels: map[string]bool{}}
	if since, err := dayfile.Parse(s.Since); err == nil {
		s.Days = max(0, int((now-since.UnixNano())/int64(24*time.Hour)))
	}
	of := t.state.Tenants[name]
	if of == nil {
		return s
	}
	s.Full = s.Full || of.Full >= from
	for metric, day := range of.Metrics {
		if day >= from {
			s.Metrics[metric] = true
		}
	}
	for label, day := range of.Labels {
		if day >= from {
			s.Labels[label] = true
		}
	}
	for _, x := range of.Selectors {
		if x.Day >= from {
			s.Selectors = append(s.Selectors, x.compile())
		}
	}
	return s
}

// compile returns the matchers with their functions. An expression that does not compile matches everything.
func (x *Selector) compile() []model.Matcher {
	ms := make([]model.Matcher, 0, len(x.Matchers))
	for _, m := range x.Matchers {
		c := model.Matcher{Name: m.Name, Op: m.Op, Value: m.Value}
		switch m.Op {
		case model.MatchEqual:
			c.Match = func(v string) bool { return v == m.Value }
		case model.MatchNotEqual:
			c.Match = func(v string) bool { return v != m.Value }
		default:
			re, err := regexp.Compile("^(?s:" + m.Value + ")$")
			if err != nil {
				continue
			}
			c.Match = re.MatchString
			if m.Op == model.MatchNotRegexp {
				c.Match = func(v string) bool { return !re.MatchString(v) }
			}
		}
		ms = append(ms, c)
	}
	return ms
}

// Run saves the table each [SaveEvery] until the context ends. The owner saves it at the end.
func (t *Table) Run(ctx context.Context) {
	tick := time.NewTicker(SaveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			t.Save()
		}
	}
}

// Save writes the table to its file if anything has changed, and forgets what is too old to matter.
func (t *Table) Save() {
	t.saving.Lock()
	defer t.saving.Unlock()
	now := t.o.Now()
	t.mu.Lock()
	t.forgetLocked(dayfile.Day(now - int64(Days+1)*int64(24*time.Hour)))
	if !t.unsaved || t.o.Dir == "" {
		t.mu.Unlock()
		return
	}
	t.unsaved = false
	c := t.copyLocked()
	t.mu.Unlock()
	if err := t.folder.Save(dayfile.Day(now), c); err != nil {
		t.mu.Lock()
		t.unsaved = true
		t.mu.Unlock()
		t.saved.Set(0)
		t.o.Logger.Error("cannot save what queries asked for; will retry", "err", err)
		return
	}
	t.saved.Set(1)
}

func (t *Table) forgetLocked(before string) {
	drop := func(days map[string]string) {
		for name, day := range days {
			if day < before {
				delete(days, name)
				t.names--
			}
		}
	}
	for name, of := range t.state.Tenants {
		drop(of.Metrics)
		drop(of.Labels)
		for text, x := range of.Selectors {
			if x.Day < before {
				delete(of.Selectors, text)
			}
		}
		if len(of.Metrics)+len(of.Labels)+len(of.Selectors) == 0 && of.Full < before {
			delete(t.state.Tenants, name)
		}
	}
}

func (t *Table) copyLocked() *state {
	c := &state{Began: t.state.Began, Full: t.state.Full, Tenants: make(map[string]*tenant, len(t.state.Tenants))}
	for name, of := range t.state.Tenants {
		own := &tenant{Metrics: make(map[string]string, len(of.Metrics)), Labels: make(map[string]string, len(of.Labels)), Selectors: map[string]*Selector{}, Full: of.Full}
		for k, v := range of.Metrics {
			own.Metrics[k] = v
		}
		for k, v := range of.Labels {
			own.Labels[k] = v
		}
		for k, v := range of.Selectors {
			x := *v
			own.Selectors[k] = &x
		}
		c.Tenants[name] = own
	}
	return c
}
