package syntax

import (
	"errors"
	"regexp/syntax"
	"slices"
)

// stage parses what follows | in a log query.
func (p *parser) stage(at Pos) (Stage, error) {
	switch p.peek() {
	case kIdentifier, kOpenParen:
		c, err := p.condition()
		return &LabelFilter{Pos: at, Condition: c}, err
	case kJSON:
		p.take()
		extract, err := p.extractions()
		return &JSONParser{Pos: at, Extract: extract}, err
	case kLogfmt:
		return p.logfmt(at)
	case kRegexp:
		return p.regexpParser(at)
	case kPattern:
		return p.patternParser(at)
	case kUnpack:
		p.take()
		return &UnpackParser{Pos: at}, nil
	case kDecolorize:
		p.take()
		return &Decolorize{Pos: at}, nil
	case kLineFormat:
		p.take()
		t, err := p.expect(kString)
		return &LineFormat{Pos: at, Template: t.text}, err
	case kLabelFormat:
		p.take()
		assignments, err := p.assignments()
		return &LabelFormat{Pos: at, Assignments: assignments}, err
	case kDrop:
		p.take()
		choices, err := p.choices()
		return &DropLabels{Pos: at, Labels: choices}, err
	case kKeep:
		p.take()
		choices, err := p.choices()
		return &KeepLabels{Pos: at, Labels: choices}, err
	}
	return nil, p.unexpected()
}

func (p *parser) logfmt(at Pos) (Stage, error) {
	p.take()
	s := &LogfmtParser{Pos: at}
	for p.peek() == kFlag {
		if p.take().text == flagStrict {
			s.Strict = true
		} else {
			s.KeepEmpty = true
		}
	}
	var err error
	s.Extract, err = p.extractions()
	return s, err
}

// extractions parses label="from" or label, with commas between them; there may be none.
func (p *parser) extractions() ([]Extraction, error) {
	if p.peek() != kIdentifier {
		return nil, nil
	}
	var out []Extraction
	for {
		label, err := p.expect(kIdentifier)
		if err != nil {
			return nil, err
		}
		x := Extraction{Pos: label.at, Label: label.text, From: label.text}
		if p.accept(kEqual) {
			from, err := p.expect(kString)
			if err != nil {
				return nil, err
			}
			x.From = from.text
		}
		if out = append(out, x); !p.accept(kComma) {
			return out, nil
		}
	}
}

func (p *parser) regexpParser(at Pos) (Stage, error) {
	p.take()
	t, err := p.expect(kString)
	if err != nil {
		return nil, err
	}
	const where = "invalid regexp parser: "
	re, err := p.regexps.Parse(t.text, syntax.Perl)
	if err != nil {
		return nil, regexpError(where, err)
	}
	names := slices.DeleteFunc(re.CapNames(), func(name string) bool { return name == "" })
	if len(names) == 0 {
		return nil, wholeError("%sat least one named capture must be supplied", where)
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, wholeError("%sduplicate extracted label name '%s'", where, name)
		}
	}
	return &RegexpParser{Pos: at, Pattern: t.text}, nil
}

func (p *parser) patternParser(at Pos) (Stage, error) {
	p.take()
	t, err := p.expect(kString)
	if err != nil {
		return nil, err
	}
	if _, err := ParsePattern(t.text); err != nil {
		var bad *PatternError
		if errors.As(err, &bad) {
			err = wholeError("invalid pattern parser: %s", bad)
		}
		return nil, err
	}
	return &PatternParser{Pos: at, Pattern: t.text}, nil
}

// assignments parses label=other or label="template", with commas between them.
func (p *parser) assignments() ([]Assignment, error) {
	var out []Assignment
	for {
		label, err := p.expect(kIdentifier)
		if err != nil {
			return nil, err
		}
		if _, err := p.expect(kEqual); err != nil {
			return nil, err
		}
		a := Assignment{Pos: label.at, Label: label.text}
		switch p.peek() {
		case kIdentifier:
			a.Rename, a.Value = true, p.take().text
		case kString:
			a.Value = p.take().text
		default:
			return nil, p.unexpected(kIdentifier, kString)
		}
		if out = append(out, a); !p.accept(kComma) {
			return out, nil
		}
	}
}

// choices parses labels, or matchers, with commas between them.
func (p *parser) choices() ([]LabelChoice, error) {
	var out []LabelChoice
	for {
		label, err := p.expect(kIdentifier)
		if err != nil {
			return nil, err
		}
		c := LabelChoice{Pos: label.at, Name: label.text}
		if _, ok := matchOp(p.peek()); ok {
			if c.Matcher, err = p.matcher(label); err != nil {
				return nil, err
			}
		}
		if out = append(out, c); !p.accept(kComma) {
			return out, nil
		}
	}
}
