// Package archive is the source of series in the bucket: it opens the blocks that the catalogue names, and
// reads their pages through the cache.
//
// It owns the readers of open blocks and the retries of reads. It never writes, never decides which blocks
// count (the catalogue does), and never leaves a page out: a page that cannot be read fails the query.
package archive
