// Package read is the read path between the query languages and the sources of series: it takes a tenant,
// matchers, a time range and a quota, asks every source, and merges what they hold into one stream of series.
//
// It owns the merge by key and time, the horizon of retention and the charging of series and samples. It
// never parses a language (the packages below it do), never knows what a source is made of, and never leaves
// out what a source could not read: that is an error of the query.
package read
