package victorialogs

import (
	"math"

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
