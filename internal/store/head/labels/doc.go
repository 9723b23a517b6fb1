// Package labels holds label sets that are in no part yet: the buffer that collects the labels of new series,
// the sealed runs that queries and flushes read, and matching against them. It owns no lock and knows no
// file.
package labels
