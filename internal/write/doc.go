// Package write is the write path between the receivers and the store. It admits requests by their size
// before they are read, finds out which series are new, adds the labels of those, and acknowledges a
// batch once it is durable.
//
// It owns the byte budget and the limits of requests. It never parses a protocol (the packages below it
// do), never touches a file, and never passes a batch to the head before the journal has it.
package write
