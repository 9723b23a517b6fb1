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
	// diskEvery is the interval of measurements. At 100 MB/s the folder exceeds its bound by up to 100 MB.
	diskEvery = time.Second
	// diskReserve must stay free on the file system: room for a flush and a manifest.
	diskReserve = 64 << 20
)

// disk bounds the data folder: while it is full, writes are refused.
type disk struct {
	fs    vfs.FS
	dir   string
	limit int64
	used  atomic.Int64
	full  atomic.Pointer[error]
	stop  context.CancelFunc
	done  sync.WaitGroup
}

// watchDisk measures the folder at once, and then every second until close.
func watchDisk(fs vfs.FS, dir string, limit int64, reg prometheus.Registerer) *disk {
	ctx, cancel := context.WithCancel(context.Background())
	d := &disk{fs: fs, dir: dir, limit: limit, stop: cancel}
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_disk_used_bytes", Help: "Size of the files in the data folder."},
		func() float64 { return float64(d.used.Load()) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_disk_limit_bytes", Help: "Largest size of the data folder. Beyond it, writes are refused."},
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

// roomFor returns an error of class transient unless the folder has room for that many bytes more.
func (d *disk) roomFor(bytes int64) error {
	if err := d.room(); err != nil {
		return err
	}
	if used := d.used.Load(); bytes > d.limit-used {
		return &model.LimitError{Limit: "disk", Text: fmt.Sprintf(
			"no room for %d more bytes: the data folder holds %d of at most %d; raise the limit or shorten the retention", bytes, used, d.limit)}
	}
	if u, err := d.fs.GetDiskUsage(d.dir); err == nil && bytes+diskReserve > int64(min(u.AvailBytes, math.MaxInt64)) {
		return &model.LimitError{Limit: "disk", Text: fmt.Sprintf(
			"no room for %d more bytes: the file system of the data folder has %d bytes left, of which %d stay free; make room there", bytes, u.AvailBytes, diskReserve)}
	}
	return nil
}

func (d *disk) measure() {
	used, err := folderBytes(d.fs, d.dir)
	if err != nil {
		used = max(used, d.used.Load()) // perhaps no file descriptors: the last figure is better than none
	}
	d.used.Store(used)
	var full error
	if used >= d.limit {
		full = &model.LimitError{Limit: "disk", Text: fmt.Sprintf(
			"the data folder holds %d of at most %d bytes; raise the limit or shorten the retention", used, d.limit)}
	} else if u, err := d.fs.GetDiskUsage(d.dir); err == nil && u.AvailBytes < diskReserve {
		full = &model.LimitError{Limit: "disk", Text: fmt.Sprintf(
			"the file system of the data folder has %d bytes left, of which %d stay free; make room there", u.AvailBytes, diskReserve)}
	}
	if full == nil {
		d.full.Store(nil)
		return
	}
	d.full.Store(&full)
}

// folderBytes adds up the sizes of the files below a folder, which may change meanwhile. With an error, the
// sum is incomplete.
func folderBytes(fs vfs.FS, dir string) (n int64, err error) {
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
