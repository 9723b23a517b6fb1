// Package buckets opens the way to a bucket: it checks the store at the start of a process, and puts the
// wrappers around it that pace, repeat and join requests.
//
// It knows no objects.
package buckets
