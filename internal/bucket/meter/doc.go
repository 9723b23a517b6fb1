// Package meter is a wrapper around a bucket that counts what is asked of it: requests, bytes and seconds.
//
// It owns the metrics of the bucket. It never changes a request, an answer or an error, and never tries again.
package meter
