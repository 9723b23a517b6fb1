// Package remote sends the samples of an import to a server: it encodes requests of remote write 2.0, and
// sends each until it is acknowledged. It also replaces the file that records how far an import is.
//
// What is sent, and in which order, is for the imports.
package remote
