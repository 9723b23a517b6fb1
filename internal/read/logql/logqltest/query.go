package logqltest

import "fmt"

// Query is a LogQL query with the times that it is asked for.
type Query struct {
	Text       string
	Start, End int64 // Unix nanoseconds; equal, with Step 0: an instant query
	Step       int64 // nanoseconds; of a query for lines 0
	Limit      int   // of a query for lines
	Forward    bool  // the oldest lines first
}

// Instant reports whether the query asks for one instant.
func (q *Query) Instant() bool { return q.Start == q.End && q.Step == 0 }

// String returns the query and its times, which count from [Begin].
func (q *Query) String() string {
	s := fmt.Sprintf("%s from %d to %d step %d", q.Text, q.Start-Begin, q.End-Begin, q.Step)
	if q.Limit > 0 {
		s += fmt.Sprintf(" limit %d forward %t", q.Limit, q.Forward)
	}
	return s
}
