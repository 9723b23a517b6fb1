// Package prefix puts all objects of a bucket below a prefix, so that several servers can share a bucket.
//
// It owns the translation of names, for all stores. It never sends a request itself.
package prefix
