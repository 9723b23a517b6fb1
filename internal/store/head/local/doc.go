// Package local holds the files in the head's folder: parts, the manifest that names them, and small files
// with a checksum that are replaced as a whole. References to a part delay its deletion.
//
// It does not decide which parts there are: flushing, merging and shipping do.
package local
