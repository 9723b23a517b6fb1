// Package write is the write path between the receivers and the store: it admits requests by their bytes before
// they are read, resolves which series are new, gives those their labels, and acknowledges a batch once it is durable.
//
// It owns the byte budget and the limits of requests. It never parses a protocol (the packages below it do), never
// touches a file, and never lets a batch reach the head before the journal has it.
package write
