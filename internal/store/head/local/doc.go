// Package local holds what the head keeps in its folder: the part files, with references that delay their
// deletion, the manifest that names them, and small files with a checksum that are replaced as a whole.
//
// It does not decide which parts there are: flushing, merging and shipping do.
package local
