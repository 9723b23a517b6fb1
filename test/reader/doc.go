// Package reader holds a second reader of blocks and of the bucket's records, in Python, and compares it with
// the program's. It was written from docs/format.md and docs/format-bucket.md alone.
//
// It owns reader.py and bucket.py, and a world of series that makes the engine use all documented forms. Both
// readers must return the same for every series of every block. When a format changes, change the document
// and then the second reader, from the document: a reader written from the Go source proves nothing. The
// tests carry the build tag e2e and need Python 3 with zstandard and xxhash (Debian's python3-zstandard and
// python3-xxhash):
//
//	go test -tags e2e -count=1 -v ./test/reader
package reader
