// Package fault is a wrapper around a bucket that misbehaves on purpose, for tests.
//
// It owns the rules that say which request goes wrong and how. With no rule it is the bucket that it wraps.
package fault
