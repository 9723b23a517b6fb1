// Package graphite receives Graphite's plaintext protocol over TCP and UDP, lines of a name, a value and a time, and its
// pickle protocol over TCP: frames that each hold a pickled list of points.
//
// It owns the sockets, the parsing, which allocates nothing per point, and the back-pressure: a connection is
// not read while its rows wait to become durable, and a datagram for which there is no room is dropped and counted. It
// keeps what it has taken over TCP and pushes it again when the write path refuses for a time. It never answers a
// sender, since the protocol has no answers, and never decides what is durable.
//
// A line is what carbon's line receiver takes: three tokens between any white space of Unicode. The name stands before
// the first semicolon and becomes the label __name__ as it is; after it, ;tag=value pairs become labels:
//
//	servers.web1.cpu.idle 97.5 1700000000
//	disk.used;host=web1;dc=eu 1e9 -1
//
// A frame is the length of a pickle, four bytes, big-endian, and the pickle, of any protocol:
//
//	[("servers.web1.cpu.idle", (1700000000, 97.5)), ("disk.used;host=web1;dc=eu", (-1, "1e9"))]
//
// It is read when it is there as a whole, since a pickle may refer back to any part of itself, and none of its points is
// taken if it is broken. The memory for it comes from the byte budget, in steps (see lease).
//
// One goroutine reads a connection and parses into an open chunk of rows, and one pushes chunks, one after the other,
// so that the rows of one sender become durable in their order.
package graphite
