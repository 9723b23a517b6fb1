package victorialogs

import "github.com/prometheus/client_golang/prometheus/testutil"

// GroupAlways makes a source group streams even if that saves no rows, and after lines were there twice.
func GroupAlways(s *Source) *Source {
	s.groupedRows, s.copiesPause = 0, 0
	return s
}

// CountingAll makes a source count the lines of whole ranges if the newest ones are wanted.
func CountingAll(s *Source) *Source {
	s.asksNewest = false
	return s
}

// Grouped returns how many requests were for groups of streams.
func Grouped(s *Source) int {
	return int(testutil.ToFloat64(s.metrics.requests.WithLabelValues(kindGroups, "ok")))
}

// Joined returns how many counts had a request in common with others.
func Joined(s *Source) int { return int(testutil.ToFloat64(s.metrics.joined)) }
