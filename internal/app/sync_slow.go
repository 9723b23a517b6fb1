//go:build slowsync

package app

import (
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// syncDelay is what every sync takes longer in a program that is built with the tag slowsync, to see what a slow disk
// makes of it.
const syncDelay = 5 * time.Millisecond

// machineFS is the file system of the machine, with slow syncs.
func machineFS() vfs.FS { return slowFS{vfs.Default} }

type slowFS struct{ vfs.FS }

type slowFile struct{ vfs.File }

func slow(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return slowFile{f}, nil
}

func (f slowFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return slow(f.FS.Create(name, c))
}

func (f slowFS) OpenDir(name string) (vfs.File, error) { return slow(f.FS.OpenDir(name)) }

func (f slowFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return slow(f.FS.OpenReadWrite(name, c, o...))
}

func (f slowFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return slow(f.FS.ReuseForWrite(oldname, newname, c))
}

func (f slowFile) Sync() error {
	time.Sleep(syncDelay)
	return f.File.Sync()
}

func (f slowFile) SyncData() error {
	time.Sleep(syncDelay)
	return f.File.SyncData()
}

func (f slowFile) SyncTo(length int64) (bool, error) {
	time.Sleep(syncDelay)
	return f.File.SyncTo(length)
}
