// Package logs has what all receivers of log lines share: the labels of a stream, the rules for an entry, and
// structured metadata in canonical form. It also derives the two labels that Loki derives: service_name of a
// stream and detected_level of a line.
//
// It turns streams and entries into rows of a batch. It knows no protocol. It allocates only for
// streams that it has not seen recently and for entries that it rejects. Facts and error texts follow
// Loki; the code is our own.
package logs
