// Package check finds out whether a store keeps the contract of package bucket, before Shale relies on it.
//
// It owns the steps, and the objects below check/ that they make and delete. It never touches other objects.
package check
