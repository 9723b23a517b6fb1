// Package workload makes synthetic traces of the requests that queries of logs send to a chunk cache.
//
// It owns a model that is driven by queries: streams produce chunks; dashboards, investigations, scans and
// bursts read them; and each query is split into sub-queries. The parameters of its presets are fitted to the
// figures of a public report on a cache that grew from 1.2 TB to 50 TB. The same seed gives the same trace.
// The package never simulates a cache.
package workload
