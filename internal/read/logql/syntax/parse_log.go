package syntax

import (
	"regexp/syntax"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/counts"
)

// selector parses { matchers }.
func (p *parser) selector() (*LogQuery, error) {
	q := &LogQuery{Pos: p.take().at}
	if p.accept(kCloseBrace) {
		return q, nil
	}
	alternatives := []kind{kCloseBrace}
	for {
		name, err := p.expect(kIdentifier, alternatives...)
		if err != nil {
			return nil, err
		}
		m, err := p.matcher(name)
		if err != nil {
			return nil, err
		}
		q.Matchers, alternatives = append(q.Matchers, m), nil
		switch p.peek() {
		case kComma:
			p.take()
		case kCloseBrace:
			p.take()
			return q, nil
		default:
			return nil, p.unexpected(kCloseBrace, kComma)
		}
	}
}

// matcher parses the operator and the value after a name.
func (p *parser) matcher(name token) (*Matcher, error) {
	op, ok := matchOp(p.peek())
	if !ok {
		return nil, p.unexpected(kEqual, kRegexpMatch, kRegexpNotMatch, kNotEqual)
	}
	p.take()
	value, err := p.expect(kString)
	if err != nil {
		return nil, err
	}
	return p.newMatcher(name, op, value.text)
}

func matchOp(k kind) (model.MatchOp, bool) {
	switch k {
	case kEqual:
		return model.MatchEqual, true
	case kNotEqual:
		return model.MatchNotEqual, true
	case kRegexpMatch:
		return model.MatchRegexp, true
	case kRegexpNotMatch:
		return model.MatchNotRegexp, true
	}
	return 0, false
}

// newMatcher compiles a matcher. What Prometheus' matchers know of a regular expression (the only values it
// can match, a literal prefix) is passed on, so that a source need not try every value.
func (p *parser) newMatcher(name token, op model.MatchOp, value string) (*Matcher, error) {
	m := &Matcher{Pos: name.at, Matcher: model.Matcher{Name: name.text, Op: op, Value: value, Standard: true}}
	types := [...]labels.MatchType{
		model.MatchEqual: labels.MatchEqual, model.MatchNotEqual: labels.MatchNotEqual,
		model.MatchRegexp: labels.MatchRegexp, model.MatchNotRegexp: labels.MatchNotRegexp,
	}
	if op == model.MatchRegexp || op == model.MatchNotRegexp {
		if _, err := p.regexps.Parse(value, syntax.Perl|syntax.DotNL); err != nil {
			return nil, regexpError("", err)
		}
		counts.Regexp()
	}
	lm, err := labels.NewMatcher(types[op], name.text, value)
	if err != nil {
		return nil, wholeError("%s", err)
	}
	m.Match, m.Set = lm.Matches, lm.SetMatches()
	if op == model.MatchRegexp {
		m.Prefix = lm.Prefix()
	}
	return m, nil
}

// pipeline parses stages as long as there are any. In a range it also takes the | unwrap that ends them; the
// result is then the place of its |.
func (p *parser) pipeline(q *LogQuery, inRange bool) (unwrap *Pos, err error) {
	for {
		if op, ok := lineOp(p.peek()); ok {
			if q.Stages, err = p.lineFilter(q.Stages, op); err != nil {
				return nil, err
			}
			continue
		}
		if p.peek() != kPipe {
			return nil, nil
		}
		at := p.take().at
		if inRange && p.accept(kUnwrap) {
			return &at, nil
		}
		s, err := p.stage(at)
		if err != nil {
			return nil, err
		}
		q.Stages = append(q.Stages, s)
	}
}

func lineOp(k kind) (LineOp, bool) {
	switch k {
	case kPipeExact:
		return LineContains, true
	case kPipeMatch:
		return LineMatches, true
	case kPipePattern:
		return LinePattern, true
	case kNotEqual:
		return LineNotContain, true
	case kRegexpNotMatch:
		return LineNotMatch, true
	case kNotPattern:
		return LineNotPattern, true
	}
	return "", false
}

// lineFilter parses one line filter with all its alternatives: one stage, or one for each if it is negated.
func (p *parser) lineFilter(stages []Stage, op LineOp) ([]Stage, error) {
	at := p.take().at
	f := &LineFilter{Pos: at, Op: op}
	for {
		operand, err := p.lineOperand(op)
		if err != nil {
			return nil, err
		}
		if op.Negated() {
			stages = append(stages, &LineFilter{Pos: at, Op: op, Any: []LineOperand{operand}})
		} else {
			f.Any = append(f.Any, operand)
		}
		if !p.accept(kOr) {
			break
		}
	}
	if !op.Negated() {
		stages = append(stages, f)
	}
	return stages, nil
}

func (p *parser) lineOperand(op LineOp) (LineOperand, error) {
	switch p.peek() {
	case kString:
		t := p.take()
		if op == LineMatches || op == LineNotMatch {
			// Whether it is valid is seen when the stage is built, as in Loki; what it costs is seen now.
			if _, err := p.regexps.Parse(t.text, syntax.Perl); err == errExpensive {
				return LineOperand{}, regexpError("", err)
			}
		}
		return LineOperand{Pos: t.at, Value: t.text}, nil
	case kIP:
		at := p.take().at
		addresses, err := p.ip()
		return LineOperand{Pos: at, IP: true, Value: addresses}, err
	}
	return LineOperand{}, p.unexpected(kString, kIP)
}

// ip parses what follows the word ip.
func (p *parser) ip() (string, error) {
	if _, err := p.expect(kOpenParen); err != nil {
		return "", err
	}
	addresses, err := p.expect(kString)
	if err != nil {
		return "", err
	}
	_, err = p.expect(kCloseParen)
	return addresses.text, err
}
