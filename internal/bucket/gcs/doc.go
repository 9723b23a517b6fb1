// Package gcs keeps a bucket in Google Cloud Storage.
//
// It owns the six requests that a bucket needs of the JSON API. Google's own client would add 20 MB to the
// program. It never repeats a request: the wrappers around a bucket do.
package gcs
