// Package deletion says which rows a deletion takes, and takes them out of what readers return.
//
// It owns the terms of a deletion, their stored form, and the cutting of samples and lines. It does not know
// which blocks and parts a deletion concerns: the head and the catalogue decide that. It never does I/O of
// its own and never parses LogQL: whoever opens a store hands in the compiler of filters.
package deletion
