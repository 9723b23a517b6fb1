// Package whatif predicts the hit ratio of a memcached server at other sizes of its memory, from what the
// server logs of each request.
//
// It owns the reading of the log, the sample of keys, and a model of memcached's segmented LRU for each size.
// It talks to no server: lines come in, and a prediction comes out.
package whatif
