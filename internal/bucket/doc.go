// Package bucket says what Shale needs of an object store.
//
// It owns the contract, the names that objects may have, and the sentinel for an object that is not there. Stores and
// wrappers around stores are packages below it; buckettest holds them to the contract. It never does I/O itself.
package bucket
