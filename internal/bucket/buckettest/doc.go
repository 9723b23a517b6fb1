// Package buckettest holds every bucket, and every wrapper around one, to the contract of package bucket.
//
// It owns the tests and nothing else; it is imported by tests only.
package buckettest
