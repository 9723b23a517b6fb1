// Package month simulates a bucket over a month: how many objects it has, how many requests reach it, what
// they cost, and what a restart reads.
//
// The catalogue, its commits of ships, the compactor's plans, garbage collection and retention are the code
// of the product, with the defaults of the server and a clock that jumps. Three parts are replaced:
//
//   - The bucket keeps the names and sizes of blocks, and the bytes of all small objects (bucket.go).
//   - Blocks have no rows: a stub says how much each tenant has, and a merge adds up stubs (predict.go).
//   - The rows of the head follow from rates; the head's rules when to ship are restated (head.go).
//
// It never opens a socket or a file.
package month
