// Package graphite receives Graphite's plaintext protocol over TCP, UDP and HTTP, and its pickle protocol
// over TCP. A plaintext line has a name, a value and a time; a pickle frame holds a pickled list of
// points.
//
// It owns the sockets, the parsing, which allocates nothing per point, and the back-pressure. A
// connection is not read while its rows wait to become durable. A datagram for which there is no room
// is dropped and counted. Points taken over TCP are kept and pushed again when the write path refuses
// them temporarily. Only HTTP has responses; the other protocols have none. The package never decides
// what is durable.
//
// A line is what carbon's line receiver accepts: three fields separated by Unicode white space. The
// part of the name before the first semicolon becomes the label __name__ as it is; ;tag=value pairs
// after it become labels:
//
//	servers.web1.cpu.idle 97.5 1700000000
//	disk.used;host=web1;dc=eu 1e9 -1
//
// A frame is the length of a pickle in four bytes, big-endian, followed by the pickle, in any protocol
// version:
//
//	[("servers.web1.cpu.idle", (1700000000, 97.5)), ("disk.used;host=web1;dc=eu", (-1, "1e9"))]
//
// A pickle may refer back to any part of itself, so it is decoded only when it is complete, and a
// broken one yields no points. Memory for it is reserved from the byte budget in steps (see reservation).
//
// Labels of new series are copied when a chunk is pushed. Memory for them is reserved then. The push does not
// wait for it, since it holds memory for rows (see labelRoom).
//
// Each connection has two goroutines: one reads it and parses into the open chunk of rows, the other
// pushes chunks one after the other. So the rows of one sender become durable in their order.
package graphite
