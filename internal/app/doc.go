// Package app builds a running Shale: it opens the rooms in order, connects them, and closes them in reverse.
//
// It owns the data folder's lock, the split of the memory budget, the bound on the disk, and the HTTP server on which
// the handlers are mounted. It is the only room that knows every other, and holds no logic that would belong into one.
package app
