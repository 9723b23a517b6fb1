// Package fs is a bucket in a folder of a file system: the one that Shale uses when it is given no object store.
//
// It owns every file of its folder: an object is written to a temporary file, synced, given its name, and its folder is
// synced, in this order, so that an object is whole and durable once it can be seen by whoever was told of it. It never
// caches, never keeps a file open and never interprets an object.
package fs
