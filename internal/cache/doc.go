// Package cache is the contract of the tiers of the cache: memory, a disk, and servers that several processes
// share.
//
// It owns the name of a cached value, [Key], and what every [Tier] and [Secondary] promises. It never knows
// what a value means.
package cache
