package function

import (
	"context"
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// Engine is what a function may ask of the evaluator.
type Engine interface {
	// Again evaluates the first argument of the running call once more, over another window.
	Again(c *Call, from, until int64) (series.List, error)
	// Target evaluates a target that a function has composed.
	Target(c *Call, target string) (series.List, error)
	// Lookup returns a function by its name; nil: there is none.
	Lookup(name string) *Function
	// Apply calls a function with lists of series.
	Apply(c *Call, f *Function, lists ...series.List) (series.List, error)
	// Charge takes memory for values from the quota of the request, before they are made.
	Charge(c *Call, values int64) error
	// Events returns the times of the events with all of the tags; without tags, of all events.
	Events(c *Call, tags []string) ([]int64, error)
}

// Window is what an evaluation sees of its request. Functions that evaluate an argument again get a copy.
type Window struct {
	context.Context
	// From and Until bound the window in Unix seconds. Values lie after From and not after Until.
	From, Until int64
	// Now is the time of the request, in its zone.
	Now time.Time
	// XFF is the share of values that must be present where values are consolidated.
	XFF float64
	// Stacks are the totals of stacked(), by the name of the stack; nil until one is drawn.
	Stacks map[string][]float64
	// Scope belongs to the evaluator: the values of a template.
	Scope any
}

// Call is a running call of a function.
type Call struct {
	*Window
	Engine
	Function *Function
	// Values are the arguments in the order of the parameters. The values of a parameter that takes several are
	// the last. Absent ones are nil.
	Values []any
	// Source belongs to the evaluator: the call in the tree of the target.
	Source any
	spent  int
}

// checkEvery is after how many values a function looks whether its request has ended.
const checkEvery = 1 << 16

// Check counts work, and returns an error once the request has ended.
func (c *Call) Check(values int) error {
	if c.spent += values + 1; c.spent < checkEvery {
		return nil
	}
	c.spent = 0
	return c.Err()
}

// Errorf returns an error that says which function refuses its arguments.
func (c *Call) Errorf(format string, args ...any) error {
	return fmt.Errorf("%w: %s: %w", model.ErrInvalid, c.Function.Name, fmt.Errorf(format, args...))
}

// Has reports whether an argument was given, or has a default.
func (c *Call) Has(i int) bool { return i < len(c.Values) && c.Values[i] != nil }

// Value returns an argument as it was written.
func (c *Call) Value(i int) any {
	if i < len(c.Values) {
		return c.Values[i]
	}
	return nil
}

// List returns a list of series.
func (c *Call) List(i int) series.List {
	list, _ := c.Value(i).(series.List)
	return list
}

// Lists returns the lists of series from the i-th argument on.
func (c *Call) Lists(i int) []series.List {
	var lists []series.List
	for ; i < len(c.Values); i++ {
		lists = append(lists, c.List(i))
	}
	return lists
}

// Joined returns the series of all lists from the i-th argument on.
func (c *Call) Joined(i int) series.List {
	if i == len(c.Values)-1 {
		return c.List(i)
	}
	var all series.List
	for _, list := range c.Lists(i) {
		all = append(all, list...)
	}
	return all
}

// Rest returns the arguments from the i-th on.
func (c *Call) Rest(i int) []any {
	if i >= len(c.Values) {
		return nil
	}
	return c.Values[i:]
}

// Number returns a number as a float.
func (c *Call) Number(i int) float64 {
	switch v := c.Value(i).(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	case bool:
		if v {
			return 1
		}
	}
	return 0
}

// Int returns a number as an integer, without its fraction.
func (c *Call) Int(i int) int64 {
	switch v := c.Value(i).(type) {
	case int64:
		return v
	case float64:
		return int64(max(-1e18, min(1e18, v)))
	}
	return 0
}

// Text returns a string, or any other argument as text.
func (c *Call) Text(i int) string {
	if v := c.Value(i); v != nil {
		return series.Text(v)
	}
	return ""
}

// Flag returns a boolean.
func (c *Call) Flag(i int) bool {
	switch v := c.Value(i).(type) {
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	}
	return false
}

// Share returns an xFilesFactor if it was given, and otherwise another value.
func (c *Call) Share(i int, otherwise float64) float64 {
	if c.Has(i) {
		return c.Number(i)
	}
	return otherwise
}
