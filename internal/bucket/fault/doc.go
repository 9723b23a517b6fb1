// Package fault wraps a bucket and injects faults, for tests.
//
// It owns the rules that say which request fails and how. Without rules it behaves like the bucket that it
// wraps.
package fault
