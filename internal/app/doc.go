// Package app builds a running Shale: it opens the rooms in order, connects them, and closes them in reverse
// order.
//
// It owns the lock of the data folder, the split of the memory budget, the bound on the disk, and the HTTP
// server on which the handlers are mounted. It is the only room that knows all others, and has no logic that
// belongs in one of them.
package app
