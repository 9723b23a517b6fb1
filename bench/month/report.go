package month

import (
	"fmt"
	"strings"

	"github.com/shaledb/shale/internal/bill"
	"github.com/shaledb/shale/internal/plot"
)

// Prices are those of reads, as queries are billed, and of what queries do not do.
type Prices struct {
	bill.Prices
	// MillionWrites is the price of a million PUT or LIST requests. DELETE is free.
	MillionWrites bill.Dollars
	// GigabyteMonth is the price of storing 10^9 bytes for 30 days.
	GigabyteMonth bill.Dollars
}

// ListPrices are those of S3 Standard in us-east-1.
func ListPrices() Prices {
	return Prices{Prices: bill.Prices{Requests: 0.4}, MillionWrites: 5, GigabyteMonth: 0.023}
}

// requests returns the price of requests.
func (p *Prices) requests(r Requests) float64 {
	return float64(p.Cost(r.Reads, r.BytesRead)) + float64(r.Writes+r.Lists)/1e6*float64(p.MillionWrites)
}

// storage returns the price of a day of so many bytes.
func (p *Prices) storage(bytes int64) float64 {
	return float64(bytes) / 1e9 / 30 * float64(p.GigabyteMonth)
}

// Tables returns the result as Markdown: the days, the requests by what made them, and the restarts.
func (r *Result) Tables(p Prices) string {
	var t strings.Builder
	t.WriteString("| day | ships | merges | blocks that count | objects | records | lists of collected records | GB | PUT | GET | LIST | DELETE | requests, $ | storage, $ |\n")
	t.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for i := range r.Days {
		d := &r.Days[i]
		sum := d.Sum()
		fmt.Fprintf(&t, "| %d | %d | %d | %d | %d | %d | %d | %.1f | %d | %d | %d | %d | %.3f | %.3f |\n", d.Day, d.Ships, d.Merges, d.Live, d.All(), d.Records, d.Lists,
			float64(d.Bytes)/1e9, sum.Writes, sum.Reads, sum.Lists, sum.Deletes, p.requests(sum), p.storage(d.Bytes))
	}
	t.WriteString("\n| requests a day, by | PUT | GET | LIST | DELETE | GB written | GB read | $ |\n|---|---|---|---|---|---|---|---|\n")
	actors := map[string]Requests{}
	for i := range r.Days {
		for actor, n := range r.Days[i].Requests {
			actors[actor] = actors[actor].add(n, 1)
		}
	}
	for _, actor := range []string{byShips, byMerges, byCollector, byRetention} {
		sum, days := actors[actor], float64(max(1, len(r.Days)))
		fmt.Fprintf(&t, "| %s | %.0f | %.0f | %.0f | %.0f | %.2f | %.2f | %.4f |\n", actor, float64(sum.Writes)/days, float64(sum.Reads)/days,
			float64(sum.Lists)/days, float64(sum.Deletes)/days, float64(sum.BytesWritten)/1e9/days, float64(sum.BytesRead)/1e9/days, p.requests(sum)/days)
	}
	t.WriteString("\n| start | GET | LIST | PUT | MB read | seconds |\n|---|---|---|---|---|---|\n")
	for _, s := range r.Restarts {
		fmt.Fprintf(&t, "| %s | %d | %d | %d | %.2f | %.2f |\n", s.Name, s.Reads, s.Lists, s.Writes, float64(s.BytesRead)/1e6, s.Seconds)
	}
	return t.String()
}

// Plots returns charts by file name: the objects, and the money of each day.
func (r *Result) Plots(p Prices) map[string]string {
	curve := func(name string, value func(d *Day) float64) plot.Curve {
		c := plot.Curve{Name: name}
		for i := range r.Days {
			d := &r.Days[i]
			c.Points = append(c.Points, [2]float64{float64(d.Day) * 86400, value(d)})
		}
		return c
	}
	objects := plot.Lines{Title: "Objects in the bucket at the end of each day", Unit: "objects", Curves: []plot.Curve{
		curve("all", func(d *Day) float64 { return float64(d.All()) }),
		curve("blocks", func(d *Day) float64 { return float64(d.Objects) }),
		curve("records", func(d *Day) float64 { return float64(d.Records) }),
	}}
	money := plot.Lines{Title: "Dollars a day", Unit: "dollars", Curves: []plot.Curve{
		curve("storage", func(d *Day) float64 { return p.storage(d.Bytes) }),
		curve("requests", func(d *Day) float64 { return p.requests(d.Sum()) }),
	}}
	return map[string]string{"month-objects.svg": objects.SVG(), "month-dollars.svg": money.SVG()}
}
