package deletion

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

// Deletion hides rows: those of a tenant's series that satisfy all matchers, with times in a range, and that
// arrived before it. Readers apply it at once; compaction later drops the rows.
type Deletion struct {
	// Request identifies the request of a client. Two records of one request are one deletion.
	Request string
	Signal  model.Signal
	Tenant  string
	// Matchers are never empty: to delete a whole tenant, say so by {Name: "", Op: MatchEqual, Value: ""}.
	Matchers []Matcher
	Range    model.TimeRange
	// Filter is a LogQL query whose selector says the same as Matchers. Only lines that pass its stages are
	// deleted. Empty: all rows.
	Filter string
	// NotBefore is the time, in Unix nanoseconds, before which no row is dropped, so that the deletion can be
	// cancelled.
	NotBefore int64

	match []func(string) bool
	lines LineFilter
}

// LineFilter returns the test of a filter for the lines of one series. A test is used by one goroutine, and
// does not change the labels, which must stay as they are.
type LineFilter func(l model.Labels) LineTest

// LineTest reports whether a line passes.
type LineTest func(at int64, line []byte, metadata model.Labels) bool

// Compiler compiles the text of a filter. Errors are of class invalid or limit.
type Compiler func(text string) (LineFilter, error)

// Matcher is a matcher that can be stored.
type Matcher struct {
	Name  string
	Op    model.MatchOp
	Value string
}

// matchOps are the stored forms of the operators.
var matchOps = [...]string{model.MatchEqual: "=", model.MatchNotEqual: "!=", model.MatchRegexp: "=~", model.MatchNotRegexp: "!~"}

// String writes a matcher as PromQL does.
func (m Matcher) String() string {
	op := "?"
	if int(m.Op) < len(matchOps) {
		op = matchOps[m.Op]
	}
	return fmt.Sprintf("%s%s%q", m.Name, op, m.Value)
}

// Query returns the terms as a query: the filter, or the matchers in braces.
func (d *Deletion) Query() string {
	if d.Filter != "" {
		return d.Filter
	}
	all := make([]string, 0, len(d.Matchers))
	for _, m := range d.Matchers {
		if m.Name != "" {
			all = append(all, m.String())
		}
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// Every process reads every deletion, and checks it for each series of its tenant.
const (
	maxMatchers     = 64
	maxMatcherBytes = 64 << 10
	maxFilterBytes  = 64 << 10
	maxRequestBytes = 128
)

// Compile validates a deletion and compiles its matchers and its filter. Without a compiler (nil) a deletion
// with a filter can be listed, but hides nothing: only tools that read no rows may do without.
func (d *Deletion) Compile(filters Compiler) error {
	if err := model.CheckTenant(d.Tenant); err != nil {
		return err
	}
	switch {
	case d.Signal != model.Metrics && d.Signal != model.Logs:
		return invalid("unknown signal %s", d.Signal)
	case len(d.Matchers) == 0 || len(d.Matchers) > maxMatchers:
		return invalid("expected 1 to %d matchers, got %d", maxMatchers, len(d.Matchers))
	case d.Range.Min > d.Range.Max:
		return invalid("the time range is empty")
	case len(d.Request) > maxRequestBytes || !utf8.ValidString(d.Request):
		return invalid("expected a request id of at most %d bytes of UTF-8, got %.200q", maxRequestBytes, d.Request)
	case d.Filter != "" && d.Signal != model.Logs:
		return invalid("only lines of logs can be filtered")
	case len(d.Filter) > maxFilterBytes || !utf8.ValidString(d.Filter):
		return invalid("expected a filter of at most %d bytes of UTF-8, got %d bytes", maxFilterBytes, len(d.Filter))
	}
	d.match = make([]func(string) bool, 0, len(d.Matchers))
	size := 0
	for _, m := range d.Matchers {
		if size += len(m.Name) + len(m.Value); size > maxMatcherBytes {
			return invalid("the matchers have more than %d bytes", maxMatcherBytes)
		}
		if !utf8.ValidString(m.Name) || !utf8.ValidString(m.Value) { // JSON would change it
			return fmt.Errorf("%w: matcher of %q: name or value is not valid UTF-8", model.ErrInvalid, m.Name)
		}
		f, err := m.Compile()
		if err != nil {
			return err
		}
		d.match = append(d.match, f)
	}
	if d.lines = nil; d.Filter == "" || filters == nil {
		return nil
	}
	var err error
	if d.lines, err = filters(d.Filter); err != nil {
		return fmt.Errorf("deletion %s: filter %.200q: %w", d.Request, d.Filter, err)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: deletion: %s", model.ErrInvalid, fmt.Sprintf(format, args...))
}

// Compile returns the test of a value. Errors are of class invalid.
func (m Matcher) Compile() (func(string) bool, error) {
	want := m.Value
	switch m.Op {
	case model.MatchEqual:
		return func(v string) bool { return v == want }, nil
	case model.MatchNotEqual:
		return func(v string) bool { return v != want }, nil
	case model.MatchRegexp, model.MatchNotRegexp:
		// As in PromQL: anchored to the whole value, and a dot matches a new line.
		re, err := regexp.Compile("^(?s:" + want + ")$")
		if err != nil {
			return nil, fmt.Errorf("%w: matcher of %s: %v", model.ErrInvalid, m.Name, err)
		}
		wanted := m.Op == model.MatchRegexp
		return func(v string) bool { return re.MatchString(v) == wanted }, nil
	}
	return nil, fmt.Errorf("%w: matcher of %s: unknown operator %d", model.ErrInvalid, m.Name, m.Op)
}

// Matches reports whether the labels satisfy all matchers.
func (d *Deletion) Matches(l model.Labels) bool {
	for i, f := range d.match {
		if !f(string(l.Get(d.Matchers[i].Name))) {
			return false
		}
	}
	return true
}

// ModelMatchers returns the matchers in the form that the reader of a block expects.
func (d *Deletion) ModelMatchers() []model.Matcher {
	ms := make([]model.Matcher, 0, len(d.match))
	for i, m := range d.Matchers {
		ms = append(ms, model.Matcher{Name: m.Name, Op: m.Op, Value: m.Value, Match: d.match[i]})
	}
	return ms
}

// Entry is the stored form of a deletion. A field never changes its meaning.
type Entry struct {
	Request   string         `json:"request"`
	Signal    string         `json:"signal"`
	Tenant    string         `json:"tenant"`
	MinTime   int64          `json:"min_time"`
	MaxTime   int64          `json:"max_time"`
	Matchers  []MatcherEntry `json:"matchers"`
	Filter    string         `json:"filter,omitempty"`
	NotBefore int64          `json:"not_before"`
}

// MatcherEntry is the stored form of a matcher.
type MatcherEntry struct {
	Name  string `json:"name"`
	Op    string `json:"op"`
	Value string `json:"value"`
}

// Entry returns the stored form.
func (d *Deletion) Entry() (Entry, error) {
	e := Entry{
		Request: d.Request, Signal: d.Signal.String(), Tenant: d.Tenant, MinTime: d.Range.Min, MaxTime: d.Range.Max, Filter: d.Filter, NotBefore: d.NotBefore,
	}
	for _, m := range d.Matchers {
		if int(m.Op) >= len(matchOps) {
			return e, fmt.Errorf("%w: matcher of %q: unknown operator %d", model.ErrInvalid, m.Name, m.Op)
		}
		e.Matchers = append(e.Matchers, MatcherEntry{m.Name, matchOps[m.Op], m.Value})
	}
	return e, nil
}

// Deletion validates a stored form and compiles it.
func (e *Entry) Deletion(filters Compiler) (Deletion, error) {
	d := Deletion{Request: e.Request, Tenant: e.Tenant, Range: model.TimeRange{Min: e.MinTime, Max: e.MaxTime}, Filter: e.Filter, NotBefore: e.NotBefore}
	for _, s := range []model.Signal{model.Metrics, model.Logs} {
		if s.String() == e.Signal {
			d.Signal = s
		}
	}
	if d.Signal == 0 {
		return d, invalid("unknown signal %q", e.Signal)
	}
	for _, m := range e.Matchers {
		op := slices.Index(matchOps[:], m.Op)
		if op < 0 {
			return d, fmt.Errorf("%w: matcher of %q: unknown operator %q", model.ErrInvalid, m.Name, m.Op)
		}
		d.Matchers = append(d.Matchers, Matcher{m.Name, model.MatchOp(op), m.Value})
	}
	return d, d.Compile(filters)
}

// Control returns the control record of a journal that deletes rows.
func (d *Deletion) Control() (model.Control, error) {
	e, err := d.Entry()
	if err != nil {
		return model.Control{}, err
	}
	body, err := json.Marshal(&e)
	return model.Control{Kind: model.ControlDelete, Body: body}, err
}

// cancellation is the body of a control record that cancels a deletion.
type cancellation struct {
	Request string `json:"request"`
}

// Cancel returns the control record of a journal that cancels the deletion of a request.
func Cancel(request string) (model.Control, error) {
	body, err := json.Marshal(cancellation{request})
	return model.Control{Kind: model.ControlCancel, Body: body}, err
}

// ParseControl reads a control record: the deletion, or the request whose deletion is cancelled.
func ParseControl(c model.Control, filters Compiler) (d Deletion, cancelled string, err error) {
	switch c.Kind {
	case model.ControlDelete:
		var e Entry
		if err = decode(c.Body, &e); err == nil {
			d, err = e.Deletion(filters)
		}
	case model.ControlCancel:
		var x cancellation
		err = decode(c.Body, &x)
		cancelled = x.Request
	default:
		err = fmt.Errorf("%w: unknown kind %d", model.ErrInvalid, c.Kind)
	}
	if err != nil {
		err = fmt.Errorf("control record: %w", err)
	}
	return d, cancelled, err
}

func decode(body []byte, into any) error {
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("%w: %v", model.ErrInvalid, err)
	}
	return nil
}
