// Package cache is the contract of the tiers of the cache: memory, and later a disk and a shared server.
//
// It owns the name of a cached value, [Key], and what every [Tier] promises. It never knows what a value
// means.
package cache
