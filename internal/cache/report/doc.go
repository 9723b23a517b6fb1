// Package report answers GET /api/v1/cache and its neighbours: what the cache does, and what other sizes
// would do and cost.
//
// It owns the form of the answers. It counts and simulates nothing itself.
package report
