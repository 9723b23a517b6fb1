//go:build invariants

package counts

import "sync/atomic"

var parses, regexps, plans atomic.Int64

// Parse counts a query that is parsed.
func Parse() { parses.Add(1) }

// Regexp counts a regular expression that is compiled.
func Regexp() { regexps.Add(1) }

// Plan counts a plan that is made of the stages of a query.
func Plan() { plans.Add(1) }

// Counts are the counts at one moment.
type Counts struct {
	Parses, Regexps, Plans int64
}

// Now returns the counts since the process began.
func Now() Counts { return Counts{parses.Load(), regexps.Load(), plans.Load()} }

// Since returns what was counted after an earlier moment.
func Since(then Counts) Counts {
	now := Now()
	return Counts{now.Parses - then.Parses, now.Regexps - then.Regexps, now.Plans - then.Plans}
}
