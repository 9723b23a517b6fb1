package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read/remote/wire"
)

// replay is a client to which a holder always answers the same.
type replay []byte

func (r replay) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(r))}, nil
}

// streamOf returns an answer, whose head was read already.
func streamOf(t testing.TB, answer []byte, s model.Signal) *stream {
	src := New(Options{Client: &http.Client{Transport: replay(answer)}, Stall: time.Hour})
	st, err := src.post(context.Background(), "p", wire.PathSelect, &wire.Request{}, &model.Request{
		Signal: s, Quota: &model.Quota{MaxBytes: 64 << 20}, Cost: new(model.Cost), TextFilter: new(model.TextFilter),
	})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// records returns the frames of series with samples, or of streams with one chunk each.
func records(t testing.TB, s model.Signal, frames, each int) []byte {
	var b bytes.Buffer
	w := wire.NewWriter(&b)
	for f := range frames {
		batch := model.Batch{Tenant: "a", Signal: s}
		var chunks []byte
		for i := range each {
			l := model.LabelsOf("__name__", "m", "i", fmt.Sprint(f, i))
			batch.Labels.Append(uint32(i), l)
			if s == model.Metrics {
				for k := range int64(20) {
					batch.Samples.Append(k*1e9, uint64(k)<<40, 0)
				}
			} else {
				chunks = wire.AppendChunks(chunks, []wire.Chunk{{Page: f, Index: i, Rows: 1}})
			}
			batch.EndSeries(model.Key{Hi: uint64(f*each + i)})
		}
		err := w.Write(wire.Record, journal.EncodeBatch(nil, &batch))
		if err == nil && s == model.Logs {
			err = w.Write(wire.Chunks, chunks)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteJSON(wire.Trailer, wire.End{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// walk reads all that a stream has, and returns the number of series and rows.
func walk(c *cursor, rows *model.Rows) (series, samples int, err error) {
	ctx := context.Background()
	for c.Next(ctx) {
		series++
		rows.Reset()
		if err := c.AppendRows(ctx, rows); err != nil {
			return series, samples, err
		}
		samples += rows.Len()
	}
	return series, samples, c.Err()
}

// TestDecodeAllocations bounds the allocations of decoding: a few for each answer, not for each series or
// record.
func TestDecodeAllocations(t *testing.T) {
	if racetest.Fewer > 1 {
		t.Skip("the race detector allocates")
	}
	const frames, each = 50, 100
	answer := records(t, model.Metrics, frames, each)
	var rows model.Rows
	n := testing.AllocsPerRun(5, func() {
		c := &cursor{series: series{st: streamOf(t, answer, model.Metrics)}, family: model.Samples}
		series, samples, err := walk(c, &rows)
		if err != nil || series != frames*each || samples != 20*series {
			t.Fatal(series, samples, err)
		}
		c.Close()
	})
	if n > 250 {
		t.Errorf("%v allocations for %d series in %d records", n, frames*each, frames)
	}
}

// BenchmarkDecode decodes an answer of 5,000 series with 20 samples each.
func BenchmarkDecode(b *testing.B) {
	answer := records(b, model.Metrics, 50, 100)
	b.SetBytes(int64(len(answer)))
	b.ReportAllocs()
	var rows model.Rows
	for b.Loop() {
		c := &cursor{series: series{st: streamOf(b, answer, model.Metrics)}, family: model.Samples}
		if _, _, err := walk(c, &rows); err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}

// FuzzAnswer reads any bytes as answers of both kinds: no panic, and nothing without its last frame.
func FuzzAnswer(f *testing.F) {
	f.Add(records(f, model.Metrics, 2, 3))
	f.Add(records(f, model.Logs, 2, 3))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, answer []byte) {
		ctx := context.Background()
		st := streamOf(t, answer, model.Metrics)
		c := &cursor{series: series{st: st}, family: model.Samples}
		if _, _, err := walk(c, new(model.Rows)); err == nil && !st.frames.Ended() {
			t.Fatal("an answer without its last frame came as a whole one")
		}
		c.Close()
		st = streamOf(t, answer, model.Logs)
		x := &textCursor{series: series{st: st}}
		for x.Next(ctx) {
			chunks, err := x.Chunks(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range chunks {
				var rows model.TextRows
				if err := c.Page.ReadText(ctx, c.Index, model.WantLines|model.WantMetadata, &rows); err == nil {
					for i := range rows.Times {
						_, _ = rows.Line(i), rows.MetadataAt(i)
					}
				}
			}
		}
		if x.Err() == nil && !st.frames.Ended() {
			t.Fatal("an answer without its last frame came as a whole one")
		}
		x.Close()
		if left := st.req.Quota.Charged(); left.Bytes() != 0 {
			t.Fatalf("%d bytes stay charged", left.Bytes())
		}
	})
}
