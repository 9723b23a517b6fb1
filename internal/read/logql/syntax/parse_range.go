package syntax

import (
	"strconv"
	"time"
)

// rangeAggregation parses op([number,] range) [grouping].
func (p *parser) rangeAggregation() (MetricExpr, error) {
	t := p.take()
	e := &RangeAggregation{Pos: t.at, Op: RangeOp(t.text)}
	if _, err := p.expect(kOpenParen); err != nil {
		return nil, err
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var param *string
	first := []kind{kNumber, kOpenBrace, kOpenParen}
	if p.peek() == kNumber {
		number := p.take().text
		param, first = &number, first[1:]
		if _, err := p.expect(kComma); err != nil {
			return nil, err
		}
	}
	var err error
	if e.Range, err = p.logRange(first); err != nil {
		return nil, err
	}
	if _, err = p.expect(kCloseParen); err != nil {
		return nil, err
	}
	if p.peek() == kBy || p.peek() == kWithout {
		if e.Grouping, err = p.grouping(); err != nil {
			return nil, err
		}
	}
	if bad := e.check(param); bad != nil {
		p.late[e] = bad
	}
	return e, nil
}

// check sets the quantile and says what does not fit together.
func (e *RangeAggregation) check(param *string) *ParseError {
	switch {
	case param != nil && e.Op != QuantileOverTime:
		return wholeError("parameter %s not supported for operation %s", *param, e.Op)
	case param == nil && e.Op == QuantileOverTime:
		return wholeError("parameter required for operation %s", e.Op)
	case param != nil:
		var err error
		if e.Quantile, err = strconv.ParseFloat(*param, 64); err != nil {
			return wholeError("invalid parameter for operation %s: %s", e.Op, err)
		}
	}
	if e.Grouping != nil {
		switch e.Op {
		case AvgOverTime, StddevOverTime, StdvarOverTime, QuantileOverTime, MaxOverTime, MinOverTime, FirstOverTime, LastOverTime:
		default:
			return wholeError("grouping not allowed for %s aggregation", e.Op)
		}
	}
	unwrapped := e.Range.Unwrap != nil
	switch e.Op {
	case Rate, AbsentOverTime:
	case CountOverTime, BytesOverTime, BytesRate:
		if unwrapped {
			return wholeError("invalid aggregation %s with unwrap", e.Op)
		}
	default:
		if !unwrapped {
			return wholeError("invalid aggregation %s without unwrap", e.Op)
		}
	}
	return nil
}

// logRange parses a log query with a range. The range stands at the end, or right after the selector; the
// offset stands after the range. There may be parentheses around all, or around what stands before the range.
// first lists the tokens that it may begin with.
func (p *parser) logRange(first []kind) (*LogRange, error) {
	switch p.peek() {
	case kOpenBrace:
		return p.rangeOfSelector(false)
	case kOpenParen:
		p.take()
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer p.leave()
		if p.peek() == kOpenBrace {
			return p.rangeOfSelector(true)
		}
		r, err := p.logRange([]kind{kOpenBrace, kOpenParen})
		if err != nil {
			return nil, err
		}
		_, err = p.expect(kCloseParen)
		return r, err
	}
	return nil, p.unexpected(first...)
}

// rangeOfSelector parses a range from its selector on; with inParens it also takes the parenthesis that
// closes the one before.
func (p *parser) rangeOfSelector(inParens bool) (*LogRange, error) {
	q, err := p.selector()
	if err != nil {
		return nil, err
	}
	r := &LogRange{Pos: q.Pos, Query: q}
	if err := p.stagesAndUnwrap(r); err != nil {
		return nil, err
	}
	bare := len(q.Stages) == 0 && r.Unwrap == nil
	switch {
	case p.peek() == kRange:
		if err := p.rangeAndOffset(r); err != nil {
			return nil, err
		}
		if bare {
			if err := p.stagesAndUnwrap(r); err != nil {
				return nil, err
			}
		}
		if inParens {
			_, err = p.expect(kCloseParen)
		}
		return r, err
	case inParens && p.accept(kCloseParen):
		if p.peek() != kRange {
			return nil, p.unexpected(kRange)
		}
		if err := p.rangeAndOffset(r); err != nil {
			return nil, err
		}
		if bare && p.peek() == kPipe { // here no other stage may follow
			at := p.take().at
			if _, err := p.expect(kUnwrap); err != nil {
				return nil, err
			}
			r.Unwrap, err = p.unwrap(at)
		}
		return r, err
	case r.Unwrap == nil:
		return nil, p.unexpected()
	case inParens:
		return nil, p.unexpected(kRange, kCloseParen, kPipe)
	}
	return nil, p.unexpected(kRange, kPipe)
}

func (p *parser) stagesAndUnwrap(r *LogRange) error {
	at, err := p.pipeline(r.Query, true)
	if err != nil || at == nil {
		return err
	}
	r.Unwrap, err = p.unwrap(*at)
	return err
}

func (p *parser) rangeAndOffset(r *LogRange) error {
	r.Range = time.Duration(p.take().duration)
	if !p.accept(kOffset) {
		return nil
	}
	d, err := p.expect(kDuration)
	r.Offset = time.Duration(d.duration)
	return err
}

// unwrap parses what follows | unwrap, with the label filters after it.
func (p *parser) unwrap(at Pos) (*Unwrap, error) {
	u := &Unwrap{Pos: at}
	switch p.peek() {
	case kIdentifier:
		u.Label = p.take().text
	case kConvertBytes, kConvertDuration, kConvertDurationSeconds:
		u.Conversion = Conversion(p.take().text)
		if _, err := p.expect(kOpenParen); err != nil {
			return nil, err
		}
		label, err := p.expect(kIdentifier)
		if err != nil {
			return nil, err
		}
		u.Label = label.text
		if _, err := p.expect(kCloseParen); err != nil {
			return nil, err
		}
	default:
		return nil, p.unexpected(kIdentifier, kConvertBytes, kConvertDuration, kConvertDurationSeconds)
	}
	for p.accept(kPipe) {
		c, err := p.condition()
		if err != nil {
			return nil, err
		}
		u.Filters = append(u.Filters, c)
	}
	return u, nil
}

// grouping parses by (labels) or without (labels).
func (p *parser) grouping() (*Grouping, error) {
	t := p.take()
	if _, err := p.expect(kOpenParen); err != nil {
		return nil, err
	}
	names, err := p.labels()
	return &Grouping{Pos: t.at, Without: t.kind == kWithout, Labels: names}, err
}
