// Package archive answers from the blocks of the bucket: it opens the blocks that the catalogue names, and reads their
// pages through the cache.
//
// It owns the readers of open blocks and the retries of reads. It never writes, never decides which blocks count (the
// catalogue does), and never leaves a page out: what cannot be read fails the query.
package archive
