//go:build e2e

package e2e

import (
	"bufio"
	"io"
	"regexp"
)

// newLines reads lines that may be long.
func newLines(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	return s
}

func matches(expr, text string) bool { return regexp.MustCompile(expr).MatchString(text) }
