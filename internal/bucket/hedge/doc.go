// Package hedge wraps a bucket and sends a slow read a second time.
//
// It owns the latencies that say what is slow, by the size of the read, and the budget of second requests.
// The first response wins and cancels the other request. It never hedges a write, a scan or a compaction, nor
// while the store throttles or other requests wait.
package hedge
