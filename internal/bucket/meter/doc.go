// Package meter wraps a bucket and measures its requests, bytes and seconds.
//
// It owns the metrics of the bucket, and the choice of the tenants that have metrics of their own. It never
// changes a request, a result or an error, and never retries.
package meter
