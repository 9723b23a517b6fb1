// Package tsdbimport sends the blocks of Prometheus, Thanos and Mimir to a server, by remote write 2.0.
//
// It reads blocks with Prometheus's own reader, so tombstones hide samples as they do there. Every sample
// arrives as it is in the block: the bits of floats, stale markers, start timestamps, histograms of integer
// and float counts, with exponential and custom buckets. External labels of Thanos become labels of the
// series; names that begin with two underscores are Mimir's own and are left out.
//
// Blocks are sent one after the other, in the order of their first times, and each of them a day at a time.
// The store keeps rows by time: a series at a time would spread every part over all days. If two blocks have
// a value of one series and time, the later block counts.
//
// A state file has what the server has acknowledged. What was sent and not acknowledged before a crash is
// sent once more, which changes nothing: equal samples count once. Verification reads a block back over
// remote read right after it was sent.
//
// The package judges a server from outside and never imports the engine.
package tsdbimport
