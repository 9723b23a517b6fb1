// Package record writes traces of what queries ask of the cache, for `shale plan cache`.
//
// It owns the salt by which keys are hashed, which never leaves the process, so that a trace says nothing
// about what was asked for. A trace is bounded in time and bytes. It never slows a query: touches that come
// faster than they can be written are left out and counted.
package record
