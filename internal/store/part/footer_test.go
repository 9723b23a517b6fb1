package part

import (
	"bytes"
	"context"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/parttest"
	"github.com/shaledb/shale/internal/store/part/series"
)

// TestOpenKeepsNothingOfWhatItRead: readers are kept by the thousand, and what is read to open one may be
// much more than its footer, which is so short that it is stored as it is.
func TestOpenKeepsNothingOfWhatItRead(t *testing.T) {
	l := model.LabelsOf("__name__", "m", "i", "1")
	one := oneSeries{tenant: "a", key: l.Key(testSeed, model.Metrics), labels: l}
	one.rows.Append(1, 2, 0)
	_, file := writePart(t, []oneSeries{one}, testOptions(true, Dense))
	pages := FilePages(bytes.NewReader(file), nil)
	var lent [][]byte
	r, err := OpenWith(context.Background(), pages, func(_ context.Context, off, n int64) ([]byte, error) {
		b := bytes.Clone(file[off : off+n])
		lent = append(lent, b)
		return b, nil
	}, int64(len(file)))
	parttest.Must(t, err)
	for _, b := range lent {
		clear(b)
	}
	ranks, err := r.Select(context.Background(), "a", []model.Matcher{{Name: "i", Value: "1", Match: func(v string) bool { return v == "1" }}})
	if err != nil || len(ranks) != 1 {
		t.Fatal(ranks, err)
	}
	if first := r.Index(series.PostingSection)[0]; string(first.Name) != "__name__" {
		t.Fatalf("the first name is %q", first.Name)
	}
}
