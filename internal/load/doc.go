// Package load makes load for a metrics store and proves what became of it: Graphite lines and pickles in the shape of a
// fleet of agents, remote write requests of both versions in the shape of a fleet of scraped targets, and that fleet of
// targets itself, for real scrapers.
//
// Names, times and values are pure functions of a seed and of numbers (tenant, target, metric, series, cycle, round), so
// that no memory is spent on a series and any sample can be computed again: verification reads series back over
// Prometheus' HTTP API and compares them bit for bit. A [Fleet] or [Agents] is the shape of a load, a course what its
// targets go through, an origin what of it must be in the store.
//
// The package owns the generators, the senders, the targets, the state file that records what was acknowledged, and the
// verifiers. It never decides from what it got back what it sends next, except that it retries and holds to its schedule,
// and it never keeps anything per series.
package load
