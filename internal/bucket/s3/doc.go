// Package s3 keeps a bucket in Amazon S3 or a store with the same API.
//
// It owns the requests of that API and the words of its refusals, over the client of MinIO. It never repeats
// a request: the wrappers around a bucket do.
package s3
