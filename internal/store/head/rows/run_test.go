package rows

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// TestRuns fills, seals and combines buffers of rows of all kinds, with blobs of all sizes, and compares the
// sorted rows with what was put in, series by series. The memory that is charged covers what is held.
func TestRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		buffer, runs := NewBuffer(), []*Run(nil)
		type of struct {
			tenant string
			key    model.Key
		}
		want := make(map[of]*model.SeriesRows)
		blobBytes := 0
		for seq := range rapid.IntRange(1, 30).Draw(t, "batches") {
			b := drawRunBatch(t)
			blobBytes += len(b.Samples.Bytes) + len(b.Exemplars.Bytes)
			for i, k := range b.Keys {
				at := of{b.Tenant, k}
				if want[at] == nil {
					want[at] = new(model.SeriesRows)
				}
				for _, f := range model.Families() {
					c := b.Columns(f)
					want[at].Family(f).AppendRows(&c.Rows, int(c.Begin(i)), int(c.End(i)))
				}
			}
			buffer.Append(uint64(seq)+1, b)
			if rapid.IntRange(0, 3).Draw(t, "seal") == 0 && buffer.Rows > 0 {
				var sealed []*Run
				before := buffer.Bytes
				sealed, buffer = buffer.Seal()
				if sealed[0].Bytes+buffer.Bytes != before || buffer.Bytes > ChunkRows*(RowBytes+startBytes+KindBytes)+BlobBlockBytes {
					t.Fatalf("%d bytes became %d and %d", before, sealed[0].Bytes, buffer.Bytes)
				}
				runs = append(runs, sealed...)
			}
			if n := len(runs); n > 1 && rapid.Bool().Draw(t, "combine") {
				for _, tenant := range []string{"a", "b", "c"} {
					if rapid.Bool().Draw(t, "sorted before") {
						runs[n-2+rapid.IntRange(0, 1).Draw(t, "which")].Tenant(tenant)
					}
				}
				runs = append(runs[:n-2], combine(runs[n-2], runs[n-1]))
			}
		}
		if buffer.Rows > 0 {
			sealed, _ := buffer.Seal()
			runs = append(runs, sealed...)
		}
		charged, got := int64(0), make(map[of]*model.SeriesRows)
		for _, r := range runs {
			charged += r.Bytes
			last := of{}
			for s, err := range part.All(context.Background(), r.Stream()) {
				if err != nil {
					t.Fatal(err)
				}
				at := of{strings.Clone(s.Tenant), s.Key}
				if at.tenant < last.tenant || at.tenant == last.tenant && at.key.Compare(last.key) <= 0 {
					t.Fatalf("%v after %v", at, last)
				}
				if last = at; got[at] == nil {
					got[at] = new(model.SeriesRows)
				}
				got[at].Append(s.Rows)
			}
		}
		if charged < int64(blobBytes) {
			t.Fatalf("%d bytes are charged for %d bytes of blobs", charged, blobBytes)
		}
		for at, rows := range want {
			rows.Normalize()
			if got[at] == nil {
				got[at] = new(model.SeriesRows)
			}
			got[at].Normalize()
			for _, f := range model.Families() {
				if g, w := describeRows(got[at].Family(f)), describeRows(rows.Family(f)); g != w {
					t.Fatalf("%v family %d:\n%s\nwant\n%s", at, f, g, w)
				}
			}
			delete(got, at)
		}
		if len(got) > 0 {
			t.Fatalf("%d series too many", len(got))
		}
	})
}

// TestTenantsApart: to read a tenant sorts nothing of others, and copies nothing of those that only one of
// two runs has.
func TestTenantsApart(t *testing.T) {
	seal := func(tenants ...string) *Run {
		buffer := NewBuffer()
		for i, tenant := range tenants {
			b := &model.Batch{Tenant: tenant, Signal: model.Metrics}
			b.AddSample(model.Key{Hi: 1}, int64(i), 1)
			buffer.Append(uint64(i+1), b)
		}
		runs, _ := buffer.Seal()
		return runs[0]
	}
	older, newer := seal("a", "c", "d"), seal("b", "c")
	if older.Tenant("a") == nil || older.Tenant("b") != nil {
		t.Fatal("not the tenants of the run")
	}
	both := combine(older, newer)
	if got := len(both.Tenant("c").Families[model.Samples].Keys); got != 2 {
		t.Errorf("%d rows of the tenant of both", got)
	}
	for _, c := range []struct {
		tenant string
		of     *Run
		at     int
		sorted bool
	}{{"a", older, 0, true}, {"b", newer, 0, false}, {"c", nil, 0, true}, {"d", older, 2, false}} {
		i := slices.IndexFunc(both.tenants, func(r *tenantRun) bool { return r.name == c.tenant })
		if got := both.tenants[i]; got.rows != nil != c.sorted || c.of != nil && got != c.of.tenants[c.at] {
			t.Errorf("%s: sorted %t, want %t, or not shared", c.tenant, got.rows != nil, c.sorted)
		}
	}
}

func drawRunBatch(t *rapid.T) *model.Batch {
	b := &model.Batch{Tenant: rapid.SampledFrom([]string{"a", "a", "b", "b", "c"}).Draw(t, "tenant"), Signal: model.Metrics}
	blob := func(n int) []byte { return slices.Repeat([]byte{byte(rapid.Uint8().Draw(t, "byte"))}, n) }
	size := rapid.SampledFrom([]int{0, 1, 50, 100_000, BlobBlockBytes, BlobBlockBytes + 1})
	for range rapid.IntRange(1, 5).Draw(t, "series") {
		for range rapid.IntRange(0, 3).Draw(t, "rows") {
			at, start := rapid.Int64Range(0, 5).Draw(t, "at"), rapid.Int64Range(0, 1).Draw(t, "start")
			if rapid.Bool().Draw(t, "float") {
				b.Samples.Append(at, math.Float64bits(rapid.Float64().Draw(t, "v")), start)
			} else {
				b.Samples.AppendBlob(at, model.KindHistogram, blob(size.Draw(t, "size")), start)
			}
		}
		if rapid.IntRange(0, 2).Draw(t, "exemplar") == 0 {
			b.Exemplars.AppendBlob(rapid.Int64Range(0, 5).Draw(t, "seen"), model.KindExemplar, blob(size.Draw(t, "size")), 0)
		}
		// Keys that agree in the upper half, in the lower, or in none.
		b.EndSeries(model.Key{Hi: rapid.Uint64Range(0, 1).Draw(t, "hi"), Lo: rapid.Uint64Range(0, 1).Draw(t, "lo")})
	}
	return b
}

func describeRows(r *model.Rows) string {
	var sb strings.Builder
	for i, t := range r.Times {
		if fmt.Fprintf(&sb, "%d from %d: kind %d ", t, r.Start(i), r.Kind(i)); r.Kind(i) == model.KindFloat {
			fmt.Fprintf(&sb, "%x\n", r.Values[i])
		} else if b := r.Blob(i); len(b) > 0 {
			fmt.Fprintf(&sb, "%d times %x\n", len(b), b[0])
		}
	}
	return sb.String()
}

// TestSealingCostsItsRows: queries that seal a buffer row by row leave runs that cost what their rows cost,
// also where rows have start timestamps and kinds.
func TestSealingCostsItsRows(t *testing.T) {
	buffer := NewBuffer()
	own := owner{"a", model.Metrics, model.Samples}
	keys := []model.Key{{Hi: 1}}
	var rows model.Columns
	rows.AppendBlob(1, model.KindHistogram, []byte("h"), 5)
	rows.Ends = []uint32{1}
	for i := range 3 * firstChunkRows {
		buffer.spans[own] = buffer.add(buffer.spans[own], keys, &rows)
		buffer.Rows++
		var runs []*Run
		runs, buffer = buffer.Seal()
		most := int64(RowBytes + startBytes + KindBytes + 1)
		if runs[0].Bytes > most && i%firstChunkRows > 0 {
			t.Fatalf("run %d of a row costs %d bytes, and should cost %d", i, runs[0].Bytes, most)
		}
	}
}
