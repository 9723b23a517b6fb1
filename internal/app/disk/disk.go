package disk

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/model"
)

const (
	// Every is the least interval of measurements. In between, the rooms tell what they write.
	Every = time.Second
	// measureShare bounds the time of measurements: the pause after one is at least that many times as long.
	measureShare = 100
	// reserve must stay free on the file system: room for a flush and a manifest.
	reserve = 64 << 20
	// greatestMargin is the largest share of the limit that writes leave to merges and ships.
	greatestMargin = 4 << 30
)

// Disk bounds the data folder. What counts is the size of its files, of the running merges and ships, and of
// the rows in memory, which a flush writes next to the journal: now, or after a kill, when they have been
// replayed. Writes are refused while all that leaves less than a margin for merges and ships.
type Disk struct {
	fs       vfs.FS // nil: no bound
	dir      string
	limit    int64
	used     atomic.Int64
	told     atomic.Int64 // all bytes that wrote was told of
	reserved atomic.Int64
	Buffered atomic.Pointer[func() int64] // bytes that a flush may write at most
	full     atomic.Pointer[error]
	measures sync.Mutex // an older measurement must not replace a newer one
	stop     context.CancelFunc
	done     sync.WaitGroup
}

// Watch measures the folder at once, and then until close: each second, or less often if that takes long.
func Watch(fs vfs.FS, dir string, limit int64, reg prometheus.Registerer) *Disk {
	ctx, cancel := context.WithCancel(context.Background())
	d := &Disk{fs: fs, dir: dir, limit: limit, stop: cancel}
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_disk_used_bytes", Help: "Size of the files in the data folder."},
		func() float64 { return float64(d.used.Load()) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_disk_limit_bytes", Help: "Largest size of the data folder; writes are refused somewhat below it."},
		func() float64 { return float64(limit) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_disk_reserved_bytes", Help: "Bytes of the data folder that are reserved for buffered rows and for running merges and ships."},
		func() float64 { return float64(d.Reserved() + d.toFlush()) })
	begun := time.Now()
	d.Measure()
	next := time.Now().Add(measureShare * time.Since(begun))
	d.done.Go(func() {
		tick := time.NewTicker(Every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			begun := time.Now()
			if begun.Before(next) {
				d.decide()
				continue
			}
			d.Measure()
			next = time.Now().Add(measureShare * time.Since(begun))
		}
	})
	return d
}

// Room returns an error of class transient while writes are refused.
func (d *Disk) Room() error {
	if err := d.full.Load(); err != nil {
		return *err
	}
	return nil
}

// toFlush returns the bytes that a flush may write at most.
func (d *Disk) toFlush() int64 {
	if buffered := d.Buffered.Load(); buffered != nil {
		return (*buffered)()
	}
	return 0
}

// RoomToWrite returns an error of class transient unless that many bytes may be written besides those that
// count already, with the margin left.
func (d *Disk) RoomToWrite(bytes int64) error {
	if d.fs == nil {
		return nil
	}
	used, waiting, margin := d.used.Load(), d.toFlush(), max(d.reserved.Load(), min(d.limit/8, greatestMargin))
	if bytes <= d.limit-used-waiting-margin {
		return nil
	}
	return &model.LimitError{Limit: "disk", Text: fmt.Sprintf(
		"no room for %d more bytes: the data folder holds %d of at most %d, %d wait for a flush, and %d are left to merges and ships; raise the limit or shorten the retention",
		bytes, used, d.limit, waiting, margin)}
}

// Reserved returns the bytes that are reserved.
func (d *Disk) Reserved() int64 { return d.reserved.Load() }

// Free returns how many bytes can be reserved.
func (d *Disk) Free() int64 {
	if d.fs == nil {
		return math.MaxInt64
	}
	free := d.limit - d.used.Load() - d.toFlush() - d.reserved.Load()
	if u, err := d.fs.GetDiskUsage(d.dir); err == nil {
		free = min(free, int64(min(u.AvailBytes, math.MaxInt64))-reserve)
	}
	return free
}

// Reserve returns an error of class transient unless the folder has room for that many bytes more. They count
// until release is called.
func (d *Disk) Reserve(bytes int64) (release func(), err error) {
	release = d.ReserveAnyway(bytes)
	if free := d.Free(); free < 0 {
		release()
		return nil, &model.LimitError{Limit: "disk", Text: fmt.Sprintf(
			"no room for %d more bytes: the data folder holds %d of at most %d, and %d bytes can still be used; raise the limit, shorten the retention or make room on its file system",
			bytes, d.used.Load(), d.limit, max(free+bytes, 0))}
	}
	return release, nil
}

// ReserveAnyway reserves bytes whether or not the folder has room for them. Writes leave them all the same.
func (d *Disk) ReserveAnyway(bytes int64) (release func()) {
	d.reserved.Add(bytes)
	return sync.OnceFunc(func() { d.reserved.Add(-bytes) })
}

// Wrote counts bytes that were written since the last measurement.
func (d *Disk) Wrote(bytes int64) {
	d.told.Add(bytes)
	d.used.Add(bytes)
}

// Measure measures the folder.
func (d *Disk) Measure() {
	d.measures.Lock()
	defer d.measures.Unlock()
	told := d.told.Load()
	used, err := FolderBytes(d.fs, d.dir)
	if err != nil {
		used = max(used, d.used.Load()) // perhaps no file descriptors: the last figure is better than none
	}
	// Files that were written in the meantime may be among those that were counted. Then they count twice until
	// the next measurement.
	d.used.Store(used + d.told.Load() - told)
	d.decide()
}

// decide accepts or refuses writes until the next decision.
func (d *Disk) decide() {
	full := d.RoomToWrite(1)
	if full == nil {
		if u, err := d.fs.GetDiskUsage(d.dir); err == nil && u.AvailBytes < reserve {
			full = &model.LimitError{Limit: "disk", Text: fmt.Sprintf(
				"the file system of the data folder has %d bytes left, of which %d stay free; make room there", u.AvailBytes, reserve)}
		}
	}
	if full == nil {
		d.full.Store(nil)
		return
	}
	d.full.Store(&full)
}

// FolderBytes adds up the sizes of the files below a folder, which may change meanwhile. With an error, the
// sum is incomplete.
func FolderBytes(fs vfs.FS, dir string) (n int64, err error) {
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, statErr := fs.Stat(path)
		switch {
		case statErr != nil: // deleted meanwhile
		case info.IsDir():
			below, belowErr := FolderBytes(fs, path)
			n, err = n+below, errors.Join(err, belowErr)
		default:
			n += info.Size()
		}
	}
	return n, err
}

// Close ends the measurements.
func (d *Disk) Close() {
	d.stop()
	d.done.Wait()
}

// Part bounds a size that has a default by a sixteenth of the data folder.
func (d *Disk) Part(size int64) int64 {
	if d.fs == nil {
		return size
	}
	return max(1<<20, min(size, d.limit/16))
}
