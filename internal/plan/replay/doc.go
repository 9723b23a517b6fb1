// Package replay runs traces through caches and counts what they do.
//
// It owns the time between a request to the bucket and the arrival of its value, the sharing of one fetch
// by those that wait for it, and the figures of a run. Several sizes and policies run at one time, each
// with about 30 bytes a key. The package never decides what a cache keeps.
package replay
