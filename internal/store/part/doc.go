// Package part is the file format of Shale: sorted, immutable files of series, their labels and their rows. Local files
// are called parts, those in the bucket blocks; the bytes are the same.
//
// It owns every byte of such a file: pages, column codecs, page indexes, postings, footer; the writer, the reader, the
// merge and the full check. It never opens a file, never caches, never starts a goroutine and knows nothing of journals,
// heads or buckets: it writes to an io.Writer and reads through [Pages].
package part
