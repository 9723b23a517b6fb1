// Package model holds the words that every room of Shale speaks: series keys and labels, batches on their way in,
// matchers, cursors and statements of cost on their way out, and the classes of errors.
//
// It is owned by nobody and imported by everybody. It never does I/O, never starts a goroutine and imports no other
// room.
package model
