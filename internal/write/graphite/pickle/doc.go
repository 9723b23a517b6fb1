// Package pickle reads pickles that hold nothing but lists, tuples, texts and numbers, of protocols 0 to 5, as the
// clients of Graphite send them.
//
// A pickle is a program for a small stack machine. Python's machine can import modules and call what is in them; this
// one cannot: its set of opcodes is closed, and all others, whatever they would do, are an error that names them. It
// owns the memory of what it has read, uses it again for the next pickle, and asks before it takes more, so that a
// pickle which says much in few bytes meets a bound. It never copies a text that stands in the pickle as it is, never
// recurses, and never follows what a pickle says about its own size.
//
// What has been read is a graph of Values: a list may be in itself. Who walks it goes to the depth that he expects.
package pickle
