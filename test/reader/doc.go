// Package reader holds a second reader of blocks and of the bucket's records, in Python, which was written from
// docs/format.md and docs/format-bucket.md alone, and compares it with the program's.
//
// It owns reader.py and bucket.py, and a world of series that makes the engine use the forms which the documents describe.
// Both readers must say the same of every series of every block. When a format changes, the document changes, and then
// the second reader by the document: who writes it from the Go source proves nothing. The tests carry the build tag e2e
// and need Python 3 with zstandard and xxhash, Debian's python3-zstandard and python3-xxhash:
//
//	go test -tags e2e -count=1 -v ./test/reader
package reader
