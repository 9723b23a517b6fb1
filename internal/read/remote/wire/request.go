package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/shaledb/shale/internal/model"
)

// Version is the version of requests and answers. A holder refuses others.
const Version = 1

// The paths.
const (
	PathState  = "/internal/v1/state"  // GET: State
	PathSelect = "/internal/v1/select" // series with their rows
	PathLabels = "/internal/v1/labels" // names of labels, or values of one
	PathNames  = "/internal/v1/names"  // names of series without further labels
	PathText   = "/internal/v1/text"   // streams and their chunks; the pages stay until the stream is closed
	PathPage   = "/internal/v1/page"   // the lines of a page of PathText
	PathTail   = "/internal/v1/tail"   // streams with lines that come from now on
)

// TimeoutHeader holds for how many milliseconds an answer is worth something.
const TimeoutHeader = "X-Shale-Timeout-Ms"

// TailPulse is how often the answer to PathTail says that it lives, if it has no lines.
const TailPulse = 5 * time.Second

// MaxRequest is the most bytes of a request.
const MaxRequest = 1 << 20

// State is what a process holds.
type State struct {
	Version  int       `json:"version"`
	Zone     string    `json:"zone,omitempty"`
	Journals []Journal `json:"journals"`
}

// Journal is a stretch of a journal (of a partition, in roles) that a process holds: From to To, which is
// To+1 - From records. With From = To + 1 it holds nothing.
type Journal struct {
	Node  string `json:"node"`
	Epoch uint64 `json:"epoch"`
	From  uint64 `json:"from"`
	To    uint64 `json:"to"`
	// Ready says that queries may rely on the holder.
	Ready bool `json:"ready"`
}

// Need is what a request wants of a journal.
type Need struct {
	Node  string `json:"node"`
	Epoch uint64 `json:"epoch"`
	// After is the sequence number up to which blocks have the rows. Rows up to it may be left out.
	After uint64 `json:"after,omitempty"`
	// AtLeast is a sequence number that must have been applied before the holder answers; 0: none.
	AtLeast uint64 `json:"at_least,omitempty"`
	// Fences are the places of the request's deletions in the journal, 0 of those that hide nothing in it.
	Fences []uint64 `json:"fences,omitempty"`
}

// Hidden is a deletion at its place in a journal: rows of records before Seq are hidden.
type Hidden struct {
	Terms json.RawMessage
	Seq   uint64
}

// Hidden returns the deletions that hide rows of a journal.
func (r *Request) Hidden(n *Need) (all []Hidden) {
	for i, seq := range n.Fences {
		if seq > 0 && i < len(r.Deletions) {
			all = append(all, Hidden{r.Deletions[i], seq})
		}
	}
	return all
}

// Matcher is a matcher on the wire.
type Matcher struct {
	Name string `json:"name"`
	Op   string `json:"op"`
	// Value, Any and Prefix may have any bytes, which JSON strings may not.
	Value []byte `json:"value"`
	// Any is set for a matcher that only its sender can evaluate. It lists values, one of which a series must
	// have; without any, Prefix is what the value begins with. The sender looks at what it gets.
	Any    [][]byte `json:"any,omitempty"`
	Prefix []byte   `json:"prefix,omitempty"`
}

// opaque is the operator of a matcher that only its sender can evaluate.
const opaque = "?"

var ops = [...]string{model.MatchEqual: "=", model.MatchNotEqual: "!=", model.MatchRegexp: "=~", model.MatchNotRegexp: "!~"}

// Request is a request for what some journals hold.
type Request struct {
	Version  int          `json:"version"`
	Journals []Need       `json:"journals"`
	Tenant   string       `json:"tenant"`
	Signal   model.Signal `json:"signal"`
	Family   model.Family `json:"family,omitempty"`
	Matchers []Matcher    `json:"matchers,omitempty"`
	Min      int64        `json:"min"`
	Max      int64        `json:"max"`
	// Label asks PathLabels for the values of a label; empty: for names.
	Label      string           `json:"label,omitempty"`
	LabelsOnly bool             `json:"labels_only,omitempty"`
	Unlabelled bool             `json:"unlabelled,omitempty"`
	Filter     [][]Literal      `json:"filter,omitempty"` // all of the outer, any of the inner
	Cells      *model.TextCells `json:"cells,omitempty"`
	// Deletions are the terms of deletions, as commit records have them.
	Deletions []json.RawMessage `json:"deletions,omitempty"`
	// MaxSeries is the most series that the query may select; 0: no limit. A holder may ignore it.
	MaxSeries int64 `json:"max_series,omitempty"`
}

// Literal is a [model.TextLiteral] on the wire.
type Literal struct {
	Name  []byte `json:"name,omitempty"`
	Value []byte `json:"value"`
	Fold  bool   `json:"fold,omitempty"`
}

// EncodeFilter puts a filter of lines on the wire.
func EncodeFilter(f *model.TextFilter) (out [][]Literal) {
	if f == nil {
		return nil
	}
	for _, c := range f.Clauses {
		any := []Literal{}
		for _, l := range c.Any {
			any = append(any, Literal{[]byte(l.Name), []byte(l.Value), l.Fold})
		}
		out = append(out, any)
	}
	return out
}

func (r *Request) filter() *model.TextFilter {
	if len(r.Filter) == 0 {
		return nil
	}
	f := new(model.TextFilter)
	for _, any := range r.Filter {
		var c model.TextClause
		for _, l := range any {
			c.Any = append(c.Any, model.TextLiteral{Name: string(l.Name), Value: string(l.Value), Fold: l.Fold})
		}
		f.Clauses = append(f.Clauses, c)
	}
	return f
}

// PageRequest asks for the lines of a page.
type PageRequest struct {
	Session string         `json:"session"`
	Page    int            `json:"page"`
	Want    model.TextWant `json:"want"`
	// Filter says that the page need not be read if the request's filter rules it out.
	Filter bool `json:"filter,omitempty"`
}

// Answer is the head of an answer.
type Answer struct {
	Version  int       `json:"version"`
	Journals []Journal `json:"journals,omitempty"`
	// Session names the pages of PathText.
	Session string `json:"session,omitempty"`
}

// End is the trailer of an answer.
type End struct {
	Cost Cost `json:"cost"`
	// Skipped says that a page has no line that the filter lets through.
	Skipped bool `json:"skipped,omitempty"`
	// Warnings are those of the answer.
	Warnings []string `json:"warnings,omitempty"`
}

// Cost is what a holder read.
type Cost struct {
	HeadBuffers      int64 `json:"head_buffers,omitempty"`
	HeadParts        int64 `json:"head_parts,omitempty"`
	PagesRAM         int64 `json:"pages_ram,omitempty"`
	PagesDisk        int64 `json:"pages_disk,omitempty"`
	TextPages        int64 `json:"text_pages,omitempty"`
	TextPagesSkipped int64 `json:"text_pages_skipped,omitempty"`
	TextBytes        int64 `json:"text_bytes,omitempty"`
	TextLines        int64 `json:"text_lines,omitempty"`
}

// TakeCost returns what was counted since the last call.
func TakeCost(c *model.Cost) Cost {
	return Cost{
		c.HeadBuffers.Swap(0), c.HeadParts.Swap(0), c.PagesRAM.Swap(0), c.PagesDisk.Swap(0),
		c.TextPages.Swap(0), c.TextPagesSkipped.Swap(0), c.TextBytes.Swap(0), c.TextLines.Swap(0),
	}
}

// AddTo adds a cost to that of a query.
func (c *Cost) AddTo(to *model.Cost) {
	to.HeadBuffers.Add(c.HeadBuffers)
	to.HeadParts.Add(c.HeadParts)
	to.PagesRAM.Add(c.PagesRAM)
	to.PagesDisk.Add(c.PagesDisk)
	to.TextPages.Add(c.TextPages)
	to.TextPagesSkipped.Add(c.TextPagesSkipped)
	to.TextBytes.Add(c.TextBytes)
	to.TextLines.Add(c.TextLines)
}

// EncodeMatchers puts matchers on the wire. sendersOwn are those that only the sender can
// evaluate: it must look at the labels of what it gets.
func EncodeMatchers(ms []model.Matcher) (out []Matcher, sendersOwn []model.Matcher) {
	for _, m := range ms {
		w := Matcher{Name: m.Name, Op: ops[m.Op], Value: []byte(m.Value)}
		if m.Op >= model.MatchRegexp && !m.Standard {
			w.Op, w.Value = opaque, nil
			if m.Op == model.MatchRegexp {
				w.Prefix = []byte(m.Prefix)
				for _, v := range m.Set {
					w.Any = append(w.Any, []byte(v))
				}
			}
			sendersOwn = append(sendersOwn, m)
		}
		out = append(out, w)
	}
	return out, sendersOwn
}

// decode compiles a matcher. The error is of class invalid.
func (m *Matcher) decode() (model.Matcher, error) {
	out := model.Matcher{Name: m.Name, Value: string(m.Value), Standard: true}
	if m.Op == opaque {
		out.Op, out.Standard, out.Prefix = model.MatchRegexp, false, string(m.Prefix)
		out.Match = func(v string) bool { return strings.HasPrefix(v, out.Prefix) }
		if len(m.Any) > 0 {
			set := make(map[string]bool, len(m.Any))
			for _, v := range m.Any {
				set[string(v)] = true
				out.Set = append(out.Set, string(v))
			}
			if set[""] { // then series without the label satisfy it, and Set does not say so
				out.Set = nil
			}
			out.Match = func(v string) bool { return set[v] }
		}
		return out, nil
	}
	for op, text := range ops {
		if text != m.Op {
			continue
		}
		types := [...]labels.MatchType{labels.MatchEqual, labels.MatchNotEqual, labels.MatchRegexp, labels.MatchNotRegexp}
		lm, err := labels.NewMatcher(types[op], m.Name, out.Value)
		if err != nil {
			return out, fmt.Errorf("%w: matcher of %s: %v", model.ErrInvalid, m.Name, err)
		}
		out.Op, out.Match = model.MatchOp(op), lm.Matches
		if out.Op >= model.MatchRegexp {
			out.Set = lm.SetMatches()
		}
		if out.Op == model.MatchRegexp {
			out.Prefix = lm.Prefix()
		}
		return out, nil
	}
	return out, fmt.Errorf("%w: unknown operator %q", model.ErrInvalid, m.Op)
}

// ParseRequest decodes a request. The error is of class invalid.
func ParseRequest(body []byte) (*Request, error) {
	var r Request
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("%w: request: %v", model.ErrInvalid, err)
	}
	if r.Version != Version {
		return nil, fmt.Errorf("%w: request of version %d, and this is version %d; upgrade what holds rows first", model.ErrInvalid, r.Version, Version)
	}
	if r.Signal != model.Metrics && r.Signal != model.Logs {
		return nil, fmt.Errorf("%w: unknown signal %d", model.ErrInvalid, r.Signal)
	}
	if r.Family > model.Text {
		return nil, fmt.Errorf("%w: unknown family %d", model.ErrInvalid, r.Family)
	}
	if r.Cells != nil && r.Cells.Step < 0 {
		return nil, fmt.Errorf("%w: cells of %d", model.ErrInvalid, r.Cells.Step)
	}
	return &r, nil
}

// ToModel returns the request as sources take it, without quota and cost.
func (r *Request) ToModel() (*model.Request, error) {
	out := &model.Request{
		Tenant: r.Tenant, Signal: r.Signal, Family: r.Family, Range: model.TimeRange{Min: r.Min, Max: r.Max},
		LabelsOnly: r.LabelsOnly, Unlabelled: r.Unlabelled, TextFilter: r.filter(), Cells: r.Cells,
	}
	for i := range r.Matchers {
		m, err := r.Matchers[i].decode()
		if err != nil {
			return nil, err
		}
		out.Matchers = append(out.Matchers, m)
	}
	return out, nil
}

// Failure is an error on the wire.
type Failure struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// The codes.
const (
	CodeInvalid      = "invalid"
	CodeLimit        = "limit"
	CodeCorrupt      = "corrupt"
	CodeClosed       = "closed"
	CodeTransient    = "transient"
	CodeOverloaded   = "overloaded"    // the process has as many requests as it may
	CodeWrongJournal = "wrong_journal" // it holds no such journal, or is not ready to answer for it
	CodeLag          = "lag"           // it has not applied what the request waits for
)

// Errors that a code stands for, besides the classes.
var (
	ErrOverloaded   = fmt.Errorf("%w: too many requests", model.ErrTransient)
	ErrWrongJournal = fmt.Errorf("%w: journal is not held", model.ErrTransient)
	ErrLag          = fmt.Errorf("%w: not applied in time", model.ErrTransient)
)

var codes = []struct {
	code string
	err  error
}{
	{CodeOverloaded, ErrOverloaded},
	{CodeWrongJournal, ErrWrongJournal},
	{CodeLag, ErrLag},
	{CodeLimit, model.ErrLimit},
	{CodeInvalid, model.ErrInvalid},
	{CodeCorrupt, model.ErrCorrupt},
	{CodeClosed, model.ErrClosed},
	{CodeTransient, model.ErrTransient},
}

// FailureOf returns an error as it goes on the wire. Errors without a class are transient.
func FailureOf(err error) Failure {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return Failure{c.code, err.Error()}
		}
	}
	return Failure{CodeTransient, err.Error()}
}

// Err returns the error that a failure stands for.
func (f *Failure) Err() error {
	class := model.ErrTransient
	for _, c := range codes {
		if c.code == f.Code {
			class = c.err
		}
	}
	return &wireError{class, f.Text}
}

// wireError has the text of the other side, which names its class already.
type wireError struct {
	class error
	text  string
}

func (e *wireError) Error() string { return e.text }
func (e *wireError) Unwrap() error { return e.class }

func failure(body []byte) error {
	var f Failure
	if err := ParseJSON(body, &f); err != nil {
		return err
	}
	return f.Err()
}
