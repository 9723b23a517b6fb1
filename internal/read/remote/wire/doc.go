// Package wire is what a query process and the holder of recent rows say to each other: requests as JSON, and
// answers as a stream of frames whose rows are journal records.
//
// It owns the bytes and nothing else. It reads and writes only the streams that it is given, starts no
// goroutine, and knows neither heads nor queries. docs/format-peer.md specifies the bytes.
package wire
