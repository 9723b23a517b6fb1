// Package trace holds traces of cache requests in memory, and reads them from files.
//
// It owns the form of a request and the formats of trace files: CSV, and the oracleGeneral format of
// libCacheSim. A trace is bounded by a number of requests, and a file can be sampled by key. The package
// never simulates a cache.
package trace
