package rules

import (
	"github.com/shaledb/shale/internal/carbonconf"
	"github.com/shaledb/shale/internal/pyregexp"
)

// List is a blacklist or a whitelist: one regular expression a line, each searched anywhere in a path.
type List []*pyregexp.Regexp

// ParseList parses a file.
func ParseList(path string, text []byte) (List, error) {
	var l List
	err := carbonconf.Lines(path, text, func(n int, line string) error {
		re, err := pyregexp.Compile(line, false)
		if err != nil {
			return carbonconf.Errorf(path, n, "%w", err)
		}
		l = append(l, re)
		return nil
	})
	return l, err
}

// Match reports whether a path is on the list.
func (l List) Match(path string) (bool, error) {
	for _, re := range l {
		if ok, err := re.Search(path); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}
