package fs

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"

	"github.com/shaledb/shale/internal/model"
)

// temporary is the folder of files that are not objects yet. The names of objects cannot begin with a dot.
const temporary = ".tmp"

// lockSuffix ends the name of the file that a writer locks as long as it lives.
const lockSuffix = ".lock"

// prepare creates the folder of temporary files before the first of them, and removes the leftovers of
// processes that have ended. It returns what begins the names of temporary files of this process.
//
// Other processes may be writing: an operator may repair a bucket while a server uses it. So the names of
// each writer differ, and it locks a file. The age of a file does not tell whether its writer lives, and
// leftovers of the size of a block must not take space for a day.
func (b *Bucket) prepare() (writer string, err error) {
	b.preparing.Lock()
	defer b.preparing.Unlock()
	if b.prepared {
		return b.writer, nil
	}
	dir := b.fs.PathJoin(b.dir, temporary)
	if err := b.ensureFolder(dir); err != nil {
		if errors.Is(err, syscall.ENOTDIR) {
			err = fmt.Errorf("%w: %v", model.ErrInvalid, err)
		}
		return "", err
	}
	if b.writer == "" {
		if err := b.becomeWriter(dir); err != nil {
			return "", err
		}
	}
	err = b.removeLeftovers(dir)
	b.prepared = err == nil
	return b.writer, err
}

// becomeWriter chooses a name and locks its file. On a file system without locks the file is not locked. Then
// no other process can lock it either, so none takes the writer for dead.
func (b *Bucket) becomeWriter(dir string) (err error) {
	for range 3 {
		var random [6]byte
		for i := range random {
			random[i] = byte(rand.Uint32())
		}
		name := hex.EncodeToString(random[:])
		path := b.fs.PathJoin(dir, name+lockSuffix)
		b.lock, err = b.fs.Lock(path)
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
			continue // another process has found the file before it was locked, and removes it
		}
		_, statErr := b.fs.Stat(path)
		if statErr == nil {
			b.writer = name
			return nil
		}
		if err != nil {
			break // the file could not be created
		}
		err = errors.Join(fmt.Errorf("lock %s: %w", path, statErr), b.lock.Close()) // removed before it was locked
	}
	return err
}

// removeLeftovers removes the files of writers that have ended.
func (b *Bucket) removeLeftovers(dir string) error {
	names, err := b.fs.List(dir)
	if err != nil {
		return err
	}
	files := map[string][]string{} // by writer; without its lock
	for _, name := range names {
		file, isLock := strings.CutSuffix(name, lockSuffix)
		writer, _, _ := strings.Cut(file, "-")
		all := files[writer]
		if !isLock {
			all = append(all, name)
		}
		files[writer] = all
	}
	delete(files, b.writer)
	var errs []error
	for writer, names := range files {
		path := b.fs.PathJoin(dir, writer+lockSuffix)
		lock, err := b.fs.Lock(path)
		if err != nil {
			continue // it lives
		}
		for _, name := range names {
			if err := b.fs.Remove(b.fs.PathJoin(dir, name)); err != nil && !missing(err) {
				errs = append(errs, err)
			}
		}
		// Before the lock is free: the writer may have just made the file, and must notice that it is gone.
		_ = b.fs.Remove(path)
		errs = append(errs, lock.Close())
	}
	return errors.Join(errs...)
}
