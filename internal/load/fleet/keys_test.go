package fleet

import (
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// TestKeysDiffer: no two series of a tenant, in no two cycles, have one key.
func TestKeysDiffer(t *testing.T) {
	f := testFleetShape()
	f.Scrapers, f.Churn.SeriesInterval = 2, time.Hour
	seen := map[model.Key]bool{}
	for g := range f.Total() {
		for cycle := range 3 {
			var pairs []string
			for k, v := range f.LabelsOf(g, cycle) {
				pairs = append(pairs, k, v)
			}
			seen[model.LabelsOf(pairs...).Key(1, model.Metrics)] = true
		}
	}
	if int64(len(seen)) != 3*f.Total() {
		t.Errorf("%d keys, want %d", len(seen), 3*f.Total())
	}
}
