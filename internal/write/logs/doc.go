// Package logs is what all receivers of log lines share: the labels of a stream, the rules for an entry, its structured
// metadata in canonical form, and the two things that Loki derives, service_name of a stream and detected_level of a line.
//
// It turns streams and entries into rows of a batch. It reads no protocol, and what it allocates is for streams that it has
// not seen lately and for entries that are left out. Loki's source served for its facts and texts; the code is our own.
package logs
