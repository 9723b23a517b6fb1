// Package aggregate computes the aggregates of aggregation-rules.conf as carbon-aggregator does. Unlike
// carbon, it keeps what it has taken through a restart, a kill and a power cut.
//
// A buffer belongs to the path of one aggregate. It has an interval for each time that points came for,
// and an interval has a running value, or all values if the method is a percentile. Every frequency
// seconds after the first point, the buffer computes the intervals that have new points, and stores them
// under the start of the interval. An interval is forgotten when it is older than the last
// MAX_AGGREGATION_INTERVALS. Points that come later start it again, from nothing.
//
// # The log
//
// What buffers take is appended to a log in the data folder, and Sync makes it durable. The receiver
// calls Sync before it stores the points themselves. When the log has grown, a snapshot of all buffers
// begins a new file, and the old one is deleted. The greatest number of a file is that of the log:
//
//	aggregation/000007.log
//
// A file is that of package segment. Its records are sequences of entries. An entry begins with its kind, a
// byte. Numbers are varints, and values are the bits of a float64, little-endian:
//
//	b id frequency method tenant path    a buffer; a text is its length and its bytes
//	v id start value                     a point of the interval that begins at start, in Unix seconds
//	s id start count value n value...    an interval in a snapshot, with n values if its method needs them
//	d id start                           the interval was stored and is forgotten
//	r id                                 the rule of the path has changed: its next point begins another buffer
//	e id                                 the buffer is forgotten
//
// An interval is forgotten in the log only after its aggregate is durable. So a crash stores some
// aggregates again, with the same value, and loses none.
//
// Memory is bounded. Beyond the bound points are left out of aggregates, which is counted and logged.
//
// The package never reads rules or rewrites paths: write/graphite/pipeline says which points belong to
// which aggregates.
package aggregate
