// Package ledger counts what queries ask of each tier of the cache, and what each tier does for it.
//
// It tells the first touch of a value by a query from later ones, which always hit. It counts hits, the age
// of the data, evictions of what was never read, and the time that values stay.
//
// It owns the counters of a bounded number of tenants, and their sums of the last hour. A touch takes some
// tens of nanoseconds and allocates nothing. It never knows what a value means, and never decides what a tier
// keeps.
package ledger
