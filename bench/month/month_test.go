package month

import (
	"context"
	"strings"
	"testing"
	"time"

	"testing/synctest"
)

// TestMonth simulates a few days of a small server, and bounds what they cost.
func TestMonth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tenants, days = 20, 3
		fleet := DefaultFleet()
		fleet.Tenants, fleet.Series, fleet.Streams, fleet.LineBytes = tenants, 20_000, 1_000, 20_000
		r, err := Simulate(context.Background(), Options{Fleet: fleet, Days: days, Retention: 36 * time.Hour, Latency: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		prices := ListPrices()
		t.Log("\n" + r.Tables(prices))
		last := r.Days[days-1]
		sum := last.Sum()
		for _, c := range []struct {
			what      string
			got, most int
		}{
			{"writes a day", int(sum.Writes), 400},
			{"reads a day", int(sum.Reads), 1300},
			{"lists a day", int(sum.Lists), 900},
			{"blocks that count", last.Live, 80},
			{"objects", last.All(), 200},
			{"markers", last.Markers, 0},
			{"requests of a restart", int(r.Restarts[0].Reads + r.Restarts[0].Lists), 60},
			{"requests of a restart without its disk", int(r.Restarts[1].Reads + r.Restarts[1].Lists), 60},
			{"milliseconds of a restart without its disk", int(1000 * r.Restarts[1].Seconds), 500},
		} {
			if c.got > c.most {
				t.Errorf("%d %s, at most %d are expected", c.got, c.what, c.most)
			}
		}
		if last.Live == 0 || last.Bytes == 0 || sum.Writes == 0 {
			t.Errorf("nothing has happened: %+v", last)
		}
		for name, svg := range r.Plots(prices) {
			if !strings.Contains(svg, "days</text>") && !strings.Contains(svg, "hours</text>") {
				t.Errorf("%s has no axis of time", name)
			}
		}
	})
}
