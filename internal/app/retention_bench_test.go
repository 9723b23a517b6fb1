package app

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/retention"
)

// BenchmarkRetention selects 2,000 series of ten days from compacted blocks: without rules, with rules that
// hide nothing in the range, with rules over blocks that are not divided, and over those that are.
func BenchmarkRetention(b *testing.B) {
	const oneDay = 24 * time.Hour
	rules := func(keep string) *retention.Rules {
		var l retention.List
		if err := l.UnmarshalText([]byte(`[{tenant: x, keep: 1d}, {match: '{env="dev"}', keep: ` + keep + `}]`)); err != nil {
			b.Fatal(err)
		}
		r, err := retention.Compile(l, 30*oneDay)
		if err != nil {
			b.Fatal(err)
		}
		return r
	}
	for _, c := range []struct {
		name          string
		written, read *retention.Rules
	}{{"none", nil, nil}, {"recent", nil, rules("20d")}, {"undivided", nil, rules("5d")}, {"divided", rules("5d"), rules("5d")}} {
		b.Run(c.name, func(b *testing.B) {
			mem, now := vfs.NewMem(), int64(1_700_006_400*time.Second)
			open := func(r *retention.Rules) *Engine {
				bucket, err := bucketfs.New(mem, "/bucket")
				if err != nil {
					b.Fatal(err)
				}
				e, err := OpenEngine(context.Background(), EngineOptions{
					FS: mem, DataDir: crashDir, Bucket: bucket, Node: "n", MemoryBytes: 512 << 20, Idle: true, Now: func() int64 { return now }, Retention: r,
				})
				if err != nil {
					b.Fatal(err)
				}
				return e
			}
			e := open(c.written)
			for range 10 {
				fillDay(b, e, &now)
			}
			if err := e.Close(); err != nil {
				b.Fatal(err)
			}
			e = open(c.read)
			defer e.Close()
			b.ResetTimer()
			for range b.N {
				rows := 0
				set, err := e.Querier().Select(context.Background(), &model.Request{Tenant: "t0", Signal: model.Metrics, Range: everything})
				if err != nil {
					b.Fatal(err)
				}
				var read model.Rows
				for set.Next(context.Background()) {
					read.Reset()
					if err := set.AppendRows(context.Background(), &read); err != nil {
						b.Fatal(err)
					}
					rows += read.Len()
				}
				if err := errors.Join(set.Err(), set.Close()); err != nil || rows == 0 {
					b.Fatal(rows, err)
				}
			}
		})
	}
}

// fillDay writes a row an hour of each series, and compacts the day.
func fillDay(b *testing.B, e *Engine, now *int64) {
	for range 24 {
		batch := &worldtest.Batch{Tenant: "t0", Signal: model.Metrics}
		for i := range 2000 {
			batch.Series = append(batch.Series, worldtest.Series{
				Labels: model.LabelsOf("__name__", "m", "env", []string{"dev", "prod"}[i%2], "i", fmt.Sprint(i)), Rows: []worldtest.Row{worldtest.Float(*now, 1)},
			})
		}
		if err := pushBatch(e.Path(), batch); err != nil {
			b.Fatal(err)
		}
		*now += int64(time.Hour)
	}
	if err := e.Ship(); err != nil {
		b.Fatal(err)
	}
	*now += int64(2 * time.Hour)
	if err := e.Compact(context.Background()); err != nil {
		b.Fatal(err)
	}
	*now -= int64(2 * time.Hour)
}
