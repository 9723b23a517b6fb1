// Package stats asks memcached servers what they know of themselves: statistics, settings, items.
//
// It owns one connection at a time, which it gives up after an error. It never changes what a server holds,
// and never says what the figures mean.
package stats
