package logs

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/shaledb/shale/internal/model"
)

// ParseLabels adds the labels of a text of the form {a="b"} to lb, without those that are empty.
// simpleLabels parses almost all texts. All others go to the PromQL parser, which defines the syntax
// and the error texts.
func ParseLabels(text []byte, lb *model.LabelsBuilder) error {
	if simpleLabels(text, lb) {
		return nil
	}
	lb.Reset()
	l, err := parser.NewParser(parser.Options{}).ParseMetric(string(text))
	if err != nil {
		return fmt.Errorf("%w: couldn't parse labels: %w", model.ErrInvalid, err)
	}
	l.Range(func(l labels.Label) { lb.Add([]byte(l.Name), []byte(l.Value)) })
	return nil
}

// simpleLabels parses labels whose names are letters, digits and underscores, and whose values are in
// double quotes and have no escapes. For any other text it returns false and leaves arbitrary labels in
// lb.
func simpleLabels(text []byte, lb *model.LabelsBuilder) bool {
	p := skipBlank(text, 0)
	if p == len(text) || text[p] != '{' || !utf8.Valid(text) {
		return false
	}
	if p = skipBlank(text, p+1); p < len(text) && text[p] == '}' {
		return skipBlank(text, p+1) == len(text)
	}
	for {
		begin := p
		for p < len(text) && nameByte(text[p], p > begin) {
			p++
		}
		name := text[begin:p]
		if p = skipBlank(text, p); len(name) == 0 || p == len(text) || text[p] != '=' {
			return false
		}
		if p = skipBlank(text, p+1); p == len(text) || text[p] != '"' {
			return false
		}
		n := bytes.IndexByte(text[p+1:], '"')
		if n < 0 {
			return false
		}
		value := text[p+1 : p+1+n]
		if bytes.IndexByte(value, '\\') >= 0 || bytes.IndexByte(value, '\n') >= 0 || bytes.Contains(value, replacement) {
			return false
		}
		lb.Add(name, value)
		if p = skipBlank(text, p+2+n); p == len(text) {
			return false
		}
		if text[p] == '}' {
			return skipBlank(text, p+1) == len(text)
		}
		if text[p] != ',' {
			return false
		}
		p = skipBlank(text, p+1)
	}
}

func nameByte(c byte, inside bool) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || inside && c >= '0' && c <= '9'
}

// skipBlank returns the index of the next byte that is not white space.
func skipBlank(text []byte, p int) int {
	for p < len(text) && (text[p] == ' ' || text[p] == '\t' || text[p] == '\n' || text[p] == '\r') {
		p++
	}
	return p
}
