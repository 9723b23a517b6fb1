package whisperimport

import (
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/prometheus/prometheus/model/labels"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/move/remote"
)

// A series that ends with its request, and one that goes on in the next, are sent without a series that has
// no samples, which servers refuse.
func TestRequestsHaveNoEmptySeries(t *testing.T) {
	queue := make(chan *numbered, 10)
	m := maker{builder: remote.NewBuilder(), queue: queue}
	for i, n := range []int{10_000, 4_000, 7_000, 0, 1} {
		rows := &model.Rows{}
		for k := range n {
			rows.Append(int64(k+1)*1e9, uint64(k), 0)
		}
		err := m.add(t.Context(), &series{path: string(rune('a' + i)), labels: labels.FromStrings("__name__", string(rune('a'+i))), rows: rows, tally: Tally{Files: 1}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := m.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(queue)
	samples, until := 0, ""
	for n := range queue {
		raw, err := s2.Decode(nil, n.Body)
		if err != nil {
			t.Fatal(err)
		}
		var got writev2.Request
		if err := got.Unmarshal(raw); err != nil {
			t.Fatal(err)
		}
		for i := range got.Timeseries {
			if len(got.Timeseries[i].Samples) == 0 {
				t.Errorf("request %d has an empty series", n.number)
			}
			samples += len(got.Timeseries[i].Samples)
		}
		until += n.until + " "
	}
	if samples != 21_001 || until != "a b e " {
		t.Errorf("%d samples, files %q", samples, until)
	}
}
