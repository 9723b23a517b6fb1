package kafka

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
)

// flat lists what a batch has, series by series and row by row.
func flat(b *model.Batch) (all []string) {
	label := 0
	for i, k := range b.Keys {
		for ; label < b.Labels.Len() && b.Labels.Series[label] == uint32(i); label++ {
			all = append(all, fmt.Sprintf("%s/%d %s labels %x", b.Tenant, b.Signal, k, []byte(b.Labels.At(label))))
		}
		for _, f := range model.Families() {
			c := b.Columns(f)
			for j := c.Begin(i); j < c.End(i); j++ {
				n := int(j)
				value := fmt.Sprint(c.Kind(n))
				if c.Kind(n) == model.KindFloat {
					value = fmt.Sprint(c.Values[n])
				} else {
					value += string(c.Blob(n))
				}
				all = append(all, fmt.Sprintf("%s/%d %s family %d at %d from %d: %s", b.Tenant, b.Signal, k, f, c.Times[n], c.Start(n), value))
			}
		}
	}
	return all
}

// The parts of a batch have all of it, each series in its partition and in its order.
func TestSplit(t *testing.T) {
	kept := make(splitters, maxSplitters)
	rapid.Check(t, func(t *rapid.T) {
		partitions := int32(1) << rapid.IntRange(0, 6).Draw(t, "bits")
		of := func(k model.Key) int32 { return int32(k.Lo & uint64(partitions-1)) }
		b := &model.Batch{Tenant: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant"), Signal: model.Metrics}
		for range rapid.IntRange(1, 30).Draw(t, "series") {
			k := model.Key{Hi: rapid.Uint64Range(0, 2).Draw(t, "hi"), Lo: rapid.Uint64Range(0, 70).Draw(t, "lo")}
			for range rapid.IntRange(0, 3).Draw(t, "samples") {
				at := rapid.Int64Range(0, 9).Draw(t, "time")
				if rapid.Bool().Draw(t, "histogram") {
					b.Samples.AppendBlob(at, model.KindHistogram, []byte(rapid.StringN(0, 5, 5).Draw(t, "blob")), at)
				} else {
					b.Samples.Append(at, rapid.Uint64().Draw(t, "value"), rapid.Int64Range(0, 1).Draw(t, "start"))
				}
			}
			for range rapid.IntRange(0, 2).Draw(t, "exemplars") {
				b.Exemplars.AppendBlob(1, model.KindExemplar, []byte("e"), 0)
			}
			if rapid.Bool().Draw(t, "labels") {
				b.Labels.Append(uint32(len(b.Keys)), model.Labels(rapid.StringN(0, 9, 9).Draw(t, "bytes")))
			}
			b.EndSeries(k)
		}
		want := make(map[int32][]string)
		for i := range b.Keys {
			one := &model.Batch{Tenant: b.Tenant, Signal: b.Signal}
			for _, f := range model.Families() {
				c := b.Columns(f)
				if c.End(i) > c.Begin(i) {
					one.Columns(f).AppendRows(&c.Rows, int(c.Begin(i)), int(c.End(i)))
				}
			}
			for l := range b.Labels.Len() {
				if b.Labels.Series[l] == uint32(i) {
					one.Labels.Append(0, b.Labels.At(l))
				}
			}
			one.EndSeries(b.Keys[i])
			p := of(b.Keys[i])
			want[p] = append(want[p], flat(one)...)
		}
		got := make(map[int32][]string)
		for _, p := range split(kept, b, partitions, of, 1<<30) {
			if _, twice := got[p.partition]; twice {
				t.Fatalf("partition %d has two parts", p.partition)
			}
			var back model.Batch
			if err := journal.DecodeBatch(p.record, &back); err != nil {
				t.Fatal(err)
			}
			got[p.partition] = flat(&back)
		}
		for p := range partitions {
			if fmt.Sprint(got[p]) != fmt.Sprint(want[p]) {
				t.Fatalf("partition %d: got %q, expected %q", p, got[p], want[p])
			}
		}
	})
}

// A control record goes to all partitions.
func TestSplitControl(t *testing.T) {
	kept := make(splitters, maxSplitters)
	b := &model.Batch{Tenant: "a", Signal: model.Logs, Control: model.Control{Kind: model.ControlDelete, Body: []byte("x")}}
	parts := split(kept, b, 4, nil, 1<<30)
	want := journal.EncodeBatch(nil, b)
	for i, p := range parts {
		if p.partition != int32(i) || !bytes.Equal(p.record, want) {
			t.Errorf("part %d is of partition %d", i, p.partition)
		}
	}
	if len(parts) != 4 {
		t.Errorf("got %d parts, expected 4", len(parts))
	}
}
