package ingester

import (
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/ingest"
	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/store/topics"
)

// TestLaterEpochs: a process learns of all epochs that were recorded while it slept. It begins with those
// that may have rows, and ends one that is given up though an earlier one is not closed. Brokers are away.
func TestLaterEpochs(t *testing.T) {
	b, err := bucketfs.New(vfs.NewMem(), "/b")
	if err != nil {
		t.Fatal(err)
	}
	var recorded []topics.Epoch
	add := func(e topics.Epoch) {
		t.Helper()
		e.ID, e.Begins = e.Topic, make([]int64, e.Partitions)
		if e, err = topics.Add(t.Context(), b, recorded, e); err != nil {
			t.Fatal(err)
		}
		recorded = append(recorded, e)
	}
	add(topics.Epoch{Topic: "a", Partitions: 1})
	c, err := catalog.Open(t.Context(), b, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	away := kafka.Connection{Brokers: []string{"127.0.0.1:1"}}
	settings := &config.Config{}
	settings.Kafka.Brokers = away.Brokers[0]
	var lives atomic.Int64
	x, err := OpenEpochs(t.Context(), EpochsOptions{
		Config: settings, Bucket: b, Catalog: c, Known: recorded, Partitions: []int32{0}, Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
		Of: func(*topics.Epoch, int32, int) ingest.Options {
			dir := "/" + strconv.FormatInt(lives.Add(1), 10)
			return ingest.Options{Connection: away, Bucket: b, Catalog: c, Head: head.Options{FS: vfs.NewMem(), Dir: dir, KnownBytes: 1 << 20}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	runs := func() (all []uint64) {
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, l := range x.lanes {
			all = append(all, l.epoch.Number)
		}
		return all
	}
	wait := func(want ...uint64) {
		t.Helper()
		for began := time.Now(); !slices.Equal(runs(), want); time.Sleep(10 * time.Millisecond) {
			if time.Since(began) > time.Minute {
				t.Fatalf("it runs the epochs %d, expected %d", runs(), want)
			}
		}
	}
	wait(1)
	add(topics.Epoch{Topic: "b", Partitions: 2, BeforeEnds: []int64{5}})
	wait(1, 2)
	add(topics.Epoch{Topic: "c", Partitions: 2, BeforeLost: true})
	wait(1, 3)
	// Two at once: the first of them is given up, and was never begun with.
	x.mu.Lock()
	next := recorded
	add(topics.Epoch{Topic: "d", Partitions: 4, BeforeEnds: []int64{1, 1}})
	add(topics.Epoch{Topic: "e", Partitions: 4, BeforeLost: true})
	if len(x.known) != len(next) {
		t.Errorf("it knows %d epochs", len(x.known))
	}
	x.mu.Unlock()
	wait(1, 3, 5)
}
