// Package load generates load for a store of metrics and logs, and proves what the store kept of it.
//
// Its packages form a staircase; each knows only those below it:
//
//	verify      reads a load back and compares it
//	send        senders of remote write, Graphite and Loki push
//	target      scrape targets over HTTP, for real Prometheus servers
//	statefile   the file that records what was acknowledged
//	wire        encoders of remote write 1.0 and 2.0, Graphite and Loki push
//	lines       the generator of log lines
//	fleet       the generators of metrics: targets with churn and jitter, and Graphite agents
//	values      how the values of a series move
//	pace        which part of a load is due when
//	tally       counters of a running load, and what all reports share
//	progress    the progress bar
//	random      the source of randomness
//
// Names, times, values and lines are pure functions of a seed and of numbers such as target, metric, series
// and round. So no memory is spent on a series, and verification computes every sample and every line a
// second time to compare it with what the store returns. The generators never adapt what they send to the
// responses they get, except that they retry and keep to their schedule.
package load
