package function

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/attime"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// Named is an argument with a name.
type Named struct {
	Name  string
	Value any
}

// Bind puts arguments in the order of the parameters, coerces them to the types, and adds defaults.
// graphite-web passes on what has the wrong type, and then mostly fails with status 500; here it is
// refused.
func (f *Function) Bind(args []any, named []Named) ([]any, error) {
	n := len(f.Params)
	multiple := n > 0 && f.Params[n-1].Multiple
	if len(args) > n && !multiple {
		return nil, f.refuse("at most %d arguments, found %d", n, len(args))
	}
	values := slices.Clone(args)
	for len(values) < n && !(multiple && len(values) == n-1) {
		values = append(values, nil)
	}
	for _, a := range named {
		i := slices.IndexFunc(f.Params, func(p Param) bool { return p.Name == a.Name || p.Alias != "" && p.Alias == a.Name })
		switch {
		case i < 0:
			return nil, f.refuse("an argument of its own, found %s", a.Name)
		case i < len(args):
			return nil, f.refuse("one value of %s, found two", a.Name)
		case i == len(values):
			values = append(values, nil)
		}
		values[i] = a.Value
	}
	for i := range values {
		p := &f.Params[min(i, n-1)]
		if values[i] == nil {
			if p.Required && (p.Default == nil || p.Type == SeriesList) {
				return nil, f.refuse("a value of %s (%s)", p.Name, p.Type)
			}
			if !p.Absent {
				values[i] = p.Default
			}
			continue
		}
		v, err := p.coerce(values[i])
		if err != nil {
			return nil, f.refuse("%s to be %w, found %s", p.Name, err, quote(values[i]))
		}
		values[i] = v
	}
	// As in graphite-web, a function of any number of lists may have none.
	if multiple && f.Params[n-1].Required && f.Params[n-1].Type != SeriesList && len(values) < n {
		return nil, f.refuse("a value of %s (%s)", f.Params[n-1].Name, f.Params[n-1].Type)
	}
	return values, nil
}

func (f *Function) refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s: expected %w", model.ErrInvalid, f.Name, fmt.Errorf(format, args...))
}

func quote(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case series.List:
		return fmt.Sprintf("%d series", len(v))
	case []series.List:
		return english.Plural(len(v), "list of series", "lists of series")
	}
	return series.Text(v)
}

// want is the error of a value of the wrong type. Its text says what is wanted.
type want string

func (w want) Error() string { return string(w) }

// coerce gives a value the type of the parameter.
func (p *Param) coerce(v any) (any, error) {
	if len(p.Options) > 0 && !p.Open && !slices.Contains(p.Options, v) {
		return nil, want(fmt.Sprintf("one of %v", p.Options))
	}
	switch p.Type {
	case SeriesList:
		if lists, divided := v.([]series.List); divided && (p.Divided || len(lists) == 0) {
			return slices.Concat(lists...), nil
		}
		if _, ok := v.(series.List); !ok {
			return nil, want("a list of series")
		}
		return v, nil
	case SeriesLists:
		if list, ok := v.(series.List); ok && len(list) == 0 {
			return []series.List{}, nil
		}
		if _, ok := v.([]series.List); !ok {
			return nil, want("lists of series, as mapSeries returns them")
		}
		return v, nil
	case Any:
		return v, nil
	}
	switch v.(type) {
	case series.List, []series.List:
		return nil, want("a value of type " + string(p.Type))
	}
	return p.coerceScalar(v)
}

func (p *Param) coerceScalar(v any) (any, error) {
	switch p.Type {
	case Boolean:
		return boolean(v)
	case Float:
		if f, ok := number(v); ok {
			return f, nil
		}
		return nil, want("a number")
	case Integer, Node:
		return p.whole(v)
	case IntOrInf:
		if f, ok := number(v); ok && math.IsInf(f, 1) {
			return f, nil
		}
		return p.whole(v)
	case Interval:
		if s, ok := v.(string); ok {
			if _, err := attime.ParseOffset(s); err == nil && s != "" {
				return v, nil
			}
		}
		return nil, want(`an interval such as "5min"`)
	case IntOrInterval:
		if s, ok := v.(string); ok {
			if _, err := attime.ParseOffset(s); err != nil || s == "" {
				return nil, want(`a number of points or an interval such as "5min"`)
			}
			return v, nil
		}
		if f, ok := number(v); !ok || math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, want(`a number of points or an interval such as "5min"`)
		}
		return v, nil
	case AggFunc:
		if s, ok := v.(string); ok {
			if _, err := series.AggregationOf(strings.TrimSuffix(s, "Series")); err == nil {
				return v, nil
			}
		}
		return nil, want("an aggregation: " + strings.Join(series.AggregationNames(), ", "))
	case AggOrSeriesFunc:
		if _, ok := v.(string); !ok {
			return nil, want("the name of an aggregation or of a function")
		}
		return v, nil
	case String, Tag, Date:
		if _, ok := v.(string); !ok {
			return series.Text(v), nil
		}
	}
	return v, nil
}

// whole returns an integer. With Open, a number with a fraction stays as it is.
func (p *Param) whole(v any) (any, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case float64:
		if p.Open {
			return v, nil
		}
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case string:
		if i, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil {
			return i, nil
		}
	}
	return nil, want("a whole number")
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return f, err == nil
	}
	return 0, false
}

func boolean(v any) (any, error) {
	switch v := v.(type) {
	case bool:
		return v, nil
	case string:
		switch strings.ToLower(v) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
	case int64, float64:
		switch f, _ := number(v); f {
		case 0:
			return false, nil
		case 1:
			return true, nil
		}
	}
	return nil, want("true or false")
}
