package app

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
	// diskEvery is how often the folder is measured. At 100 MB/s that lets it grow by 100 MB beyond its bound.
	diskEvery = time.Second
	// diskReserve is what must be free on the file system: room for a flush and a manifest.
	diskReserve = 64 << 20
)

// disk keeps the data folder within its bound: while it is full, writes are refused.
type disk struct {
	fs    vfs.FS
	dir   string
	limit int64
	used  atomic.Int64
	full  atomic.Pointer[error]
	stop  context.CancelFunc
	done  sync.WaitGroup
}

// watchDisk measures the folder once, and then every second until close.
func watchDisk(fs vfs.FS, dir string, limit int64, reg prometheus.Registerer) *disk {
	ctx, cancel := context.WithCancel(context.Background())
	d := &disk{fs: fs, dir: dir, limit: limit, stop: cancel}
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_disk_used_bytes", Help: "Size of the files in the data folder."},
		func() float64 { return float64(d.used.Load()) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_disk_limit_bytes", Help: "Size that the data folder may have; beyond it writes are refused."},
		func() float64 { return float64(limit) })
	d.measure()
	d.done.Go(func() {
		tick := time.NewTicker(diskEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				d.measure()
			}
		}
	})
	return d
}

// room returns an error of class transient while the folder is full.
func (d *disk) room() error {
	if err := d.full.Load(); err != nil {
		return *err
	}
	return nil
}

// roomFor returns an error of class transient unless so many bytes more fit in.
func (d *disk) roomFor(bytes int64) error {
	if err := d.room(); err != nil {
		return err
	}
	if used := d.used.Load(); bytes > d.limit-used {
		return &model.LimitError{Limit: "disk", Text: fmt.Sprintf(
			"%d bytes more do not fit: the data folder holds %d bytes and may hold %d; give it more, or shorten the retention", bytes, used, d.limit)}
	}
	if u, err := d.fs.GetDiskUsage(d.dir); err == nil && bytes+diskReserve > int64(min(u.AvailBytes, math.MaxInt64)) {
		return &model.LimitError{Limit: "disk", Text: fmt.Sprintf(
			"%d bytes more do not fit: the file system of the data folder has %d bytes left and Shale keeps %d free; make room there", bytes, u.AvailBytes, diskReserve)}
	}
	return nil
}

func (d *disk) measure() {
	used, err := folderBytes(d.fs, d.dir)
	if err != nil {
		used = max(used, d.used.Load()) // no descriptors, perhaps: better the last figure than none
	}
	d.used.Store(used)
	var full error
	if used >= d.limit {
		full = &model.LimitError{Limit: "disk", Text: fmt.Sprintf(
			"the data folder holds %d bytes and may hold %d; give it more, or shorten the retention", used, d.limit)}
	} else if u, err := d.fs.GetDiskUsage(d.dir); err == nil && u.AvailBytes < diskReserve {
		full = &model.LimitError{Limit: "disk", Text: fmt.Sprintf(
			"the file system of the data folder has %d bytes left and Shale keeps %d free; make room there", u.AvailBytes, diskReserve)}
	}
	if full == nil {
		d.full.Store(nil)
		return
	}
	d.full.Store(&full)
}

// folderBytes adds up the files below a folder. Files come and go meanwhile. With an error it has not seen all.
func folderBytes(fs vfs.FS, dir string) (n int64, err error) {
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, statErr := fs.Stat(path)
		switch {
		case statErr != nil: // it has gone
		case info.IsDir():
			below, belowErr := folderBytes(fs, path)
			n, err = n+below, errors.Join(err, belowErr)
		default:
			n += info.Size()
		}
	}
	return n, err
}

func (d *disk) close() {
	d.stop()
	d.done.Wait()
}
