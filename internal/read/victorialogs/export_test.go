package victorialogs

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// GroupAlways makes a source group streams even if that saves no rows, and after lines were there twice.
func GroupAlways(s *Source) *Source {
	s.groupedRows, s.copiesPause = 0, 0
	return s
}

// GroupFirst makes a source count lines by groups at once, however many there are.
func GroupFirst(s *Source) *Source {
	s.sparseLines = math.MaxUint64
	return s
}

// CountingAll makes a source count the lines of whole ranges if the newest ones are wanted, and those of
// streams before those of groups.
func CountingAll(s *Source) *Source {
	s.asksNewest, s.sparseLines = false, sparseLines
	return s
}

// Grouped returns how many requests were for groups of streams.
func Grouped(s *Source) int {
	return int(testutil.ToFloat64(s.metrics.requests.WithLabelValues(kindGroups, "ok")))
}

// Joined returns how many counts had a request in common with others.
func Joined(s *Source) int { return int(testutil.ToFloat64(s.metrics.joined)) }

var (
	valueClause = regexp.MustCompile(`\(([^()]*)\)|"shale stream":"(?:[^"\\]|\\.)*"`)
	valueText   = regexp.MustCompile(`"shale stream":("(?:[^"\\]|\\.)*")`)
)

// HasValues reports whether VictoriaLogs finds in the text of a stream what a filter of values says. Values
// must not have parentheses.
func HasValues(values, stream string) bool {
	for _, clause := range valueClause.FindAllString(values, -1) {
		some := false
		for _, m := range valueText.FindAllStringSubmatch(clause, -1) {
			text, err := strconv.Unquote(m[1])
			some = some || err == nil && strings.Contains(stream, text)
		}
		if !some {
			return false
		}
	}
	return true
}
