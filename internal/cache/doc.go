// Package cache is the contract of the tiers of the cache: memory, a disk, and later a shared server.
//
// It owns the name of a cached value, [Key], and what every [Tier] and [Secondary] promises. It never knows
// what a value means.
package cache
