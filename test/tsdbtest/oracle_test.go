package tsdbtest

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"pgregory.net/rapid"
)

// oracle is the storage of Prometheus.
type oracle struct {
	*tsdb.DB
	dir string
}

func openOracle(t *rapid.T) *oracle {
	dir, err := os.MkdirTemp("", "tsdbtest")
	if err != nil {
		t.Fatal(err)
	}
	o := tsdb.DefaultOptions()
	o.RetentionDuration = 0
	o.MinBlockDuration = int64(24 * time.Hour / time.Millisecond)
	o.MaxBlockDuration = o.MinBlockDuration
	o.OutOfOrderTimeWindow = int64(1000 * 24 * time.Hour / time.Millisecond)
	o.OutOfOrderCapMax = rapid.Int64Range(4, 32).Draw(t, "cap")
	o.EnableSTStorage, o.EnableHistogramSTEncoding = true, true
	o.FloatChunkEncoding = chunkenc.EncXOR2
	db, err := tsdb.Open(dir, slog.New(slog.DiscardHandler), nil, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	db.DisableCompactions()
	return &oracle{DB: db, dir: dir}
}

func (o *oracle) close(t *rapid.T) {
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(o.dir); err != nil {
		t.Error(err)
	}
}

// push appends a batch and commits it.
func push(t *rapid.T, s storage.AppendableV2, series []labels.Labels, batch []sample) {
	a := s.AppenderV2(context.Background())
	for i := range batch {
		p := &batch[i]
		// Appenders may keep and change what they get.
		c := *p
		if p.h != nil {
			c.h = p.h.Copy()
		}
		if p.fh != nil {
			c.fh = p.fh.Copy()
		}
		if _, err := a.Append(0, series[p.series], c.st, c.t, c.v, c.h, c.fh, storage.AppendV2Options{}); err != nil {
			t.Fatalf("append %s at %d: %v", series[p.series], p.t, err)
		}
	}
	if err := a.Commit(); err != nil {
		t.Fatalf("commit: %v", err)
	}
}
