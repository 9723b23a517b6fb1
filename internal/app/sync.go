//go:build !slowsync

package app

import "github.com/cockroachdb/pebble/v2/vfs"

// machineFS is the file system of the machine.
func machineFS() vfs.FS { return vfs.Default }
