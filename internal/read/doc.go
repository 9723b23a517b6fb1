// Package read is the read path between the query languages and the sources of series. It takes a tenant,
// matchers, a time range and a quota, asks every source, and merges their series into one stream.
//
// It owns the merge by key and time, the horizon of retention, and the charging of series and samples. It
// never parses a language: the packages below it do. It knows nothing about how a source stores its rows,
// and it never leaves out what a source could not read: the query fails instead.
package read
