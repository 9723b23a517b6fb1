// Package catalog says which blocks of the bucket count.
//
// It owns the commit records and the seed: their names, their bytes, who replaces whom, when a block and its record may
// go. A block is visible when its record exists and no record names it among those that it replaces. The package never
// opens a block, never uploads one and starts no goroutine.
//
// docs/format-bucket.md writes the objects down.
package catalog
