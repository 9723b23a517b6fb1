package curve

// keptHours bounds the hours that are kept: a week.
const keptHours = 7 * 24

// Point is what one combination of sizes would have done in some time. All counts are of the sample.
type Point struct {
	// RAM and SSD are factors of the sizes that the tiers have.
	RAM float64 `json:"ram"`
	SSD float64 `json:"ssd"`
	// First is the first touches of queries, and the next three say what served them: memory, the disk, or the
	// bucket.
	First       int64 `json:"first_touches"`
	FirstBytes  int64 `json:"first_bytes"`
	RAMHits     int64 `json:"ram_hits"`
	SSDHits     int64 `json:"ssd_hits"`
	SSDBytes    int64 `json:"ssd_bytes"`
	Missed      int64 `json:"missed"`
	MissedBytes int64 `json:"missed_bytes"`
	// The peaks are of the worst minute.
	PeakMissed      int64 `json:"peak_missed"`
	PeakServed      int64 `json:"peak_ssd_hits"`
	PeakServedBytes int64 `json:"peak_ssd_bytes"`
	// What the disk would have written and evicted.
	Written      int64 `json:"written_bytes"`
	Evicted      int64 `json:"evicted"`
	EvictedBytes int64 `json:"evicted_bytes"`
	Unread       int64 `json:"evicted_unread"`
}

// add adds the counts of another hour.
func (p *Point) add(o *Point) {
	p.RAM, p.SSD = o.RAM, o.SSD
	p.First += o.First
	p.FirstBytes += o.FirstBytes
	p.RAMHits += o.RAMHits
	p.SSDHits += o.SSDHits
	p.SSDBytes += o.SSDBytes
	p.Missed += o.Missed
	p.MissedBytes += o.MissedBytes
	p.PeakMissed = max(p.PeakMissed, o.PeakMissed)
	p.PeakServed = max(p.PeakServed, o.PeakServed)
	p.PeakServedBytes = max(p.PeakServedBytes, o.PeakServedBytes)
	p.Written += o.Written
	p.Evicted += o.Evicted
	p.EvictedBytes += o.EvictedBytes
	p.Unread += o.Unread
}

// Actual is what the tiers really did in the same time.
type Actual struct {
	First  int64 `json:"first_touches"`
	Memory int64 `json:"ram_hits"`
	Later  int64 `json:"later_hits"`
	// Pages came from the bucket, by so many requests.
	Pages    int64 `json:"pages"`
	Requests int64 `json:"requests"`
}

func (a *Actual) add(o Actual) {
	a.First += o.First
	a.Memory += o.Memory
	a.Later += o.Later
	a.Pages += o.Pages
	a.Requests += o.Requests
}

func (a *Actual) subtract(o Actual) {
	a.add(Actual{-o.First, -o.Memory, -o.Later, -o.Pages, -o.Requests})
}

// Hour is the curves of an hour, or of the part of it that the process has seen.
type Hour struct {
	// Start is in Unix seconds, and Seconds what was seen.
	Start   int64   `json:"start"`
	Seconds float64 `json:"seconds"`
	// Share is the share of the keys that are in the sample: the least of the hour.
	Share  float64 `json:"share"`
	Sizes  Sizes   `json:"sizes"`
	Actual Actual  `json:"actual"`
	Points []Point `json:"points"`
}
