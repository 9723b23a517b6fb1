package match

import (
	"bytes"
	"regexp"
)

// lineTest is a condition on the bytes of a line. It allocates nothing and may be used by several goroutines.
type lineTest interface {
	Matches(line []byte) bool
}

type (
	Always   struct{}
	nonEmpty struct{}
	anyOf    []lineTest
	hasBegin []byte
	hasEnd   []byte
	equals   []byte
)

func (Always) Matches([]byte) bool          { return true }
func (t hasBegin) Matches(line []byte) bool { return bytes.HasPrefix(line, t) }
func (t hasEnd) Matches(line []byte) bool   { return bytes.HasSuffix(line, t) }
func (t equals) Matches(line []byte) bool   { return bytes.Equal(line, t) }

// nonEmpty is .+, which a line of nothing but newlines does not match.
func (nonEmpty) Matches(line []byte) bool {
	for _, c := range line {
		if c != '\n' {
			return true
		}
	}
	return false
}

func (t anyOf) Matches(line []byte) bool {
	for _, x := range t {
		if x.Matches(line) {
			return true
		}
	}
	return false
}

// inOrder holds if the parts follow each other, with anything but newlines between them: foo.*bar.
type inOrder struct {
	parts []needle
	// whole is the expression, for lines with newlines in them.
	whole *regexp.Regexp
}

func (t *inOrder) Matches(line []byte) bool {
	rest := line
	for i := range t.parts {
		at := t.parts[i].index(rest)
		if at < 0 {
			return false
		}
		rest = rest[at+len(t.parts[i].text):]
	}
	return bytes.IndexByte(line, '\n') < 0 || t.whole.Match(line)
}
