// Package pace decides how many requests a store gets, at one time and per second.
//
// It owns two limits that follow the store. The limit of concurrent requests falls when they become slower
// and rises while they do not. The rates of reads and writes fall when the store throttles, once a second at
// most, and rise by a few percent a second while they are used. A wrapper measures each request. Package
// share asks the limits before it sends a request. This package never waits and keeps no queue.
package pace
