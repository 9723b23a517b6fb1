// Package disk bounds the size of the data folder: it measures it, reserves room for files to come, and says
// when writes are to be refused.
//
// It writes and deletes nothing.
package disk
