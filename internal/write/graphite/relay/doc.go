// Package relay sends points to other carbons, in place of carbon-relay.
//
// Each destination has a queue: a folder of lots. A lot is a file of points, those of a second or a
// mebibyte. It is sent over a connection of its own and deleted when the destination has confirmed it, so
// what waits is what is there, and a restart or a kill goes on with it:
//
//	relay/10.0.0.1+2004+a/000007.log
//
// Files are those of package segment. Their records are sequences of points: the length of the path, the
// path, the time in Unix seconds (numbers are varints), and the bits of the value, little-endian.
//
// # Confirmation
//
// The protocols of carbon have no acknowledgement. After a lot the sender closes its side of the
// connection. A carbon that has read all of it then closes the other side. A process that dies closes its
// connections, too, so three more things must hold. The other side was not closed before. No reset follows,
// with which the kernel answers if something was not read. Another connection, which was opened before,
// outlives the first. With TLS, the last message of the other side says that it was not cut off.
//
// If one of them fails, the lot is sent again. Some of its points arrive twice then, with the same values.
//
// # Bounds
//
// A queue takes a setting's worth of disk. Beyond it, points for its destination are dropped, counted and
// logged. Memory is some mebibytes for each destination: what waits to be written, and one lot.
//
// The package never decides where a point goes: write/graphite/route does.
package relay
