package syntax

import (
	"strconv"
	"time"
)

// condition parses the conditions of a label filter, of which the first token was looked at.
//
// The operators do not bind as one would think: and binds tighter than or, and both group from the left; but
// a condition after a comma, or after nothing at all, takes all that follows it. So a, b or c is a and (b
// or c), while a and b or c is (a and b) or c, and a and b c and d is a and (b and (c and d)). That falls out
// of Loki's table, which prefers to read on where its grammar leaves the choice.
func (p *parser) condition() (Condition, error) {
	var operands []Condition
	var ops []conditionOp
	reduce := func() {
		n := len(operands)
		left, right, op := operands[n-2], operands[n-1], ops[len(ops)-1]
		operands, ops = operands[:n-2], ops[:len(ops)-1]
		if op.kind == kOr {
			operands = append(operands, &OrCondition{op.at, left, right})
		} else {
			operands = append(operands, &AndCondition{op.at, left, right})
		}
	}
	for {
		c, err := p.conditionOperand()
		if err != nil {
			return nil, err
		}
		operands = append(operands, c)
		op := conditionOp{kind: p.peek()}
		op.at = p.tok.at
		switch op.kind {
		case kAnd, kOr, kComma:
			p.take()
		case kIdentifier, kOpenParen:
		default:
			for len(ops) > 0 {
				reduce()
			}
			return operands[0], nil
		}
		for len(ops) > 0 && ops[len(ops)-1].bindsBefore(op) {
			reduce()
		}
		ops = append(ops, op)
	}
}

// conditionOp is what joins two conditions: and, or, a comma, or the first token of the right one.
type conditionOp struct {
	kind kind
	at   Pos
}

// bindsBefore reports whether the operator, whose right side is complete, takes it before another that
// follows.
func (op conditionOp) bindsBefore(next conditionOp) bool {
	switch op.kind {
	case kAnd:
		return next.kind == kAnd || next.kind == kOr
	case kOr:
		return next.kind == kOr
	}
	return false
}

func (p *parser) conditionOperand() (Condition, error) {
	switch p.peek() {
	case kIdentifier:
		return p.comparison(p.take())
	case kOpenParen:
		p.take()
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer p.leave()
		c, err := p.condition()
		if err != nil {
			return nil, err
		}
		if !p.accept(kCloseParen) {
			return nil, p.unexpected()
		}
		return c, nil
	}
	return nil, p.unexpected(kIdentifier, kOpenParen)
}

// comparison parses what follows the name of a label.
func (p *parser) comparison(label token) (Condition, error) {
	op, ok := compareOp(p.peek())
	if ok {
		operator := p.take().kind
		switch p.peek() {
		case kString:
			if m, ok := matchOp(operator); ok {
				matcher, err := p.newMatcher(label, m, p.take().text)
				return &StringCondition{matcher}, err
			}
		case kIP:
			if operator == kEqual || operator == kNotEqual {
				p.take()
				addresses, err := p.ip()
				return &IPCondition{label.at, label.text, op, addresses}, err
			}
		case kDuration:
			return &DurationCondition{label.at, label.text, op, time.Duration(p.take().duration)}, nil
		case kBytes:
			return &BytesCondition{label.at, label.text, op, p.take().bytes}, nil
		case kNumber, kAdd, kSub:
			value, bad, err := p.signedNumber()
			if p.badNumber == nil {
				p.badNumber = bad
			}
			return &NumberCondition{label.at, label.text, op, value}, err
		}
		return nil, p.unexpected()
	}
	if m, ok := matchOp(p.peek()); ok {
		p.take()
		value, err := p.expect(kString)
		if err != nil {
			return nil, err
		}
		matcher, err := p.newMatcher(label, m, value.text)
		return &StringCondition{matcher}, err
	}
	return nil, p.unexpected()
}

// compareOp is the comparison with a quantity; = is one, too.
func compareOp(k kind) (CompareOp, bool) {
	switch k {
	case kEqual, kCompareEqual:
		return CompareEqual, true
	case kNotEqual:
		return CompareNotEqual, true
	case kGreater:
		return CompareGreater, true
	case kGreaterOrEqual:
		return CompareGreaterOrEqual, true
	case kLess:
		return CompareLess, true
	case kLessOrEqual:
		return CompareLessOrEqual, true
	}
	return "", false
}

// signedNumber parses a number with or without a sign. That it cannot be represented is not an error of the
// syntax.
func (p *parser) signedNumber() (value float64, bad *ParseError, err error) {
	sign := kAdd
	if p.peek() != kNumber {
		sign = p.take().kind
	}
	t, err := p.expect(kNumber)
	if err != nil {
		return 0, nil, err
	}
	value, numErr := strconv.ParseFloat(t.text, 64)
	if numErr != nil {
		bad = badNumber(numErr)
	}
	if sign == kSub {
		value = -value
	}
	return value, bad, nil
}

func badNumber(err error) *ParseError {
	return wholeError("unable to parse literal as a float: %s", err)
}
