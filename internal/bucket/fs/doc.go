// Package fs is a bucket in a folder of a file system. Shale uses it if no object store is configured.
//
// It owns every file of its folder. An object is written to a temporary file and synced, the file is renamed,
// and the folder is synced. So an object is whole and durable before its writer can tell others about it. The
// package never caches, never interprets an object, and keeps no file open but a lock, which tells other
// processes that its temporary files are in use.
package fs
