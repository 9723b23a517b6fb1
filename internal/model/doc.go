// Package model holds the types that all packages of Shale share: series keys and labels, batches for writes,
// matchers, cursors and statements of cost for reads, and the classes of errors.
//
// Every package may import it. It never does I/O, never starts a goroutine and imports no other package of
// Shale.
package model
