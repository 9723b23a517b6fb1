// Package load makes load for a metrics store and proves what became of it: Graphite lines in the shape of a fleet of
// agents, and remote write 1.0 requests in the shape of a fleet of scraped targets.
//
// Names and values are pure functions of a seed, the number of the series and the number of the round, so that no
// memory is spent on a series and any sample can be computed again: verification reads series back over Prometheus'
// HTTP API and compares them bit for bit. The package owns the generators, the senders, the state file that records
// what was acknowledged, and the verifiers. It never decides from what it got back what it sends next, except that
// it retries and holds to its schedule, and it never keeps anything per series.
package load
