package main

import (
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// slowFS is a file system whose syncs take longer.
type slowFS struct {
	vfs.FS
	delay time.Duration
}

type slowFile struct {
	vfs.File
	delay time.Duration
}

func (fs slowFS) slow(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return slowFile{f, fs.delay}, nil
}

func (fs slowFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.slow(fs.FS.Create(name, c))
}

func (fs slowFS) OpenDir(name string) (vfs.File, error) { return fs.slow(fs.FS.OpenDir(name)) }

func (fs slowFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return fs.slow(fs.FS.OpenReadWrite(name, c, o...))
}

func (fs slowFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.slow(fs.FS.ReuseForWrite(oldname, newname, c))
}

func (f slowFile) Sync() error {
	time.Sleep(f.delay)
	return f.File.Sync()
}

func (f slowFile) SyncData() error {
	time.Sleep(f.delay)
	return f.File.SyncData()
}

func (f slowFile) SyncTo(length int64) (bool, error) {
	time.Sleep(f.delay)
	return f.File.SyncTo(length)
}
