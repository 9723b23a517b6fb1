package curve

import (
	"fmt"
	"math"

	"github.com/shaledb/shale/internal/model"
)

// Estimate is what a combination of sizes does with the traffic of some hours. Rates are of the real system.
type Estimate struct {
	RAMFactor float64 `json:"ram_factor"`
	SSDFactor float64 `json:"ssd_factor"`
	RAMBytes  float64 `json:"ram_bytes"`
	SSDBytes  float64 `json:"ssd_bytes"`
	// HitRatio is the share of first touches of queries that did not need the bucket; the next two are the
	// parts of it that memory and the disk have.
	HitRatio    float64 `json:"first_touch_hit_ratio"`
	RAMHitRatio float64 `json:"ram_hit_ratio"`
	SSDHitRatio float64 `json:"ssd_hit_ratio"`
	// Requests to the bucket a second: the mean, and the worst minute.
	Requests     float64 `json:"requests_per_second"`
	PeakRequests float64 `json:"peak_requests_per_second"`
	BucketBytes  float64 `json:"bucket_bytes_per_second"`
	// Written is the bytes a day that the disk takes, and DriveWrites this divided by its size.
	Written     float64 `json:"ssd_written_bytes_per_day"`
	DriveWrites float64 `json:"drive_writes_per_day"`
	Churn       float64 `json:"ssd_churn"`
	Turnovers   float64 `json:"ssd_turnovers_per_hour"`
	// Gbps and IOPS are what the disk sends in the worst minute.
	Gbps float64 `json:"ssd_peak_gbps"`
	IOPS float64 `json:"ssd_peak_iops"`
}

// Sum is the curves of several hours.
type Sum struct {
	Hours   int
	Seconds float64
	Sizes   Sizes
	// Actual is what the tiers did, and Share the least share of the keys that was simulated.
	Actual Actual
	Share  float64
	points []figures // in the order of pairs
}

// The figures of a point, which are of the real system.
const (
	first = iota
	ramHits
	ssdHits
	missed
	missedBytes
	ssdBytes
	peakMissed
	peakServed
	peakServedBytes
	written
	evicted
	evictedBytes
	unread
	figureCount
)

type figures [figureCount]float64

// Add sums up hours. Those in which the tiers had other sizes than in the last one are left out.
func Add(hours []Hour) (*Sum, error) {
	s := &Sum{Share: 1, points: make([]figures, len(pairs()))}
	for i := range hours {
		h := &hours[i]
		if h.Sizes != hours[len(hours)-1].Sizes || len(h.Points) != len(s.points) || h.Points[0].First == 0 {
			continue
		}
		s.Hours++
		s.Seconds += h.Seconds
		s.Sizes, s.Share = h.Sizes, min(s.Share, h.Share)
		s.Actual.add(h.Actual)
		for j := range h.Points {
			s.points[j].add(&h.Points[j], h)
		}
	}
	if s.Hours == 0 || s.Seconds <= 0 {
		return nil, fmt.Errorf("%w: no query has asked for pages of the bucket yet, so there are no curves", model.ErrTransient)
	}
	return s, nil
}

// add adds the counts of an hour, scaled to the real system. Few keys of the sample may be very popular, or
// just not be in it. The touches that the sample should have had, and has not, count as hits in memory, where
// popular keys are (SHARDS-adj).
func (f *figures) add(p *Point, h *Hour) {
	scale := 1 / h.Share
	adjust := 0.0
	if h.Actual.First > 0 && h.Share < 1 {
		adjust = max(float64(h.Actual.First)-float64(p.First)*scale, -float64(p.RAMHits)*scale)
	}
	for i, n := range [figureCount]int64{
		first: p.First, ramHits: p.RAMHits, ssdHits: p.SSDHits, missed: p.Missed, missedBytes: p.MissedBytes, ssdBytes: p.SSDBytes,
		written: p.Written, evicted: p.Evicted, evictedBytes: p.EvictedBytes, unread: p.Unread,
	} {
		f[i] += float64(n) * scale
	}
	f[first] += adjust
	f[ramHits] += adjust
	for i, n := range map[int]int64{peakMissed: p.PeakMissed, peakServed: p.PeakServed, peakServedBytes: p.PeakServedBytes} {
		f[i] = max(f[i], float64(n)*scale)
	}
}

// At returns the estimate for factors of the sizes, by straight lines between those that were simulated, over
// the logarithm of the factor. A factor of 0 for the disk means that there is none.
func (s *Sum) At(ram, ssd float64) (*Estimate, error) {
	f, err := s.figures(ram, ssd)
	if err != nil {
		return nil, err
	}
	e := &Estimate{RAMFactor: ram, SSDFactor: ssd, RAMBytes: float64(s.Sizes.RAM) * ram, SSDBytes: float64(s.Sizes.SSD) * ssd}
	if f[first] > 0 {
		e.RAMHitRatio, e.SSDHitRatio = f[ramHits]/f[first], f[ssdHits]/f[first]
		e.HitRatio = e.RAMHitRatio + e.SSDHitRatio
	}
	// One request reads several pages that are near each other.
	perPage := 1.0
	if s.Actual.Pages > 0 {
		perPage = float64(s.Actual.Requests) / float64(s.Actual.Pages)
	}
	e.Requests, e.PeakRequests = f[missed]/s.Seconds*perPage, f[peakMissed]/60*perPage
	e.BucketBytes = f[missedBytes] / s.Seconds
	e.Gbps, e.IOPS = f[peakServedBytes]*8/60/1e9, f[peakServed]/60
	if f[evicted] > 0 {
		e.Churn = f[unread] / f[evicted]
	}
	if e.SSDBytes > 0 {
		e.Written = f[written] / s.Seconds * 86400
		e.DriveWrites = e.Written / e.SSDBytes
		e.Turnovers = f[evictedBytes] / e.SSDBytes / s.Seconds * 3600
	}
	return e, nil
}

func (s *Sum) figures(ram, ssd float64) (figures, error) {
	const least, most = 0.5, 20
	without := ssd == 0
	if without {
		ssd = 1
	}
	switch {
	case !(ram >= least && ram <= most && ssd >= least && ssd <= most): // NaN is out of range
		return figures{}, fmt.Errorf("%w: expected sizes between %gx and %gx of those of now, got %.3gx of the memory and %.3gx of the SSD", model.ErrInvalid, least, float64(most), ram, ssd)
	case ram != 1 && ssd != 1 && (ram > joint || ssd > joint):
		return figures{}, fmt.Errorf("%w: expected at most %dx if both sizes change, got %.3gx of the memory and %.3gx of the SSD; ask for one of them at a time", model.ErrInvalid, joint, ram, ssd)
	}
	f := along(ram, func(r float64) figures {
		return along(ssd, func(d float64) figures { return s.point(pair{r, d}) })
	})
	if without {
		f[missed] += f[ssdHits]
		f[missedBytes] += f[ssdBytes]
		f[peakMissed] += f[peakServed]
		for _, i := range []int{ssdHits, ssdBytes, peakServed, peakServedBytes, written, evicted, evictedBytes, unread} {
			f[i] = 0
		}
	}
	return f, nil
}

// along interpolates between the factors around one.
func along(x float64, at func(float64) figures) figures {
	for i, f := range Factors {
		if x == f {
			return at(f)
		}
		if x < f {
			low, high := at(Factors[i-1]), at(f)
			share := math.Log(x/Factors[i-1]) / math.Log(f/Factors[i-1])
			for j := range low {
				low[j] += (high[j] - low[j]) * share
			}
			return low
		}
	}
	return at(Factors[len(Factors)-1])
}

func (s *Sum) point(p pair) figures {
	for i, q := range pairs() {
		if p == q {
			return s.points[i]
		}
	}
	return figures{}
}

// Curve returns the estimates along one tier, the other one as it is.
func (s *Sum) Curve(ofRAM bool) []Estimate {
	var list []Estimate
	for _, f := range Factors {
		ram, ssd := 1.0, f
		switch {
		case ofRAM && s.Sizes.NoSSD:
			ram, ssd = f, 0
		case ofRAM:
			ram, ssd = f, 1
		}
		if e, err := s.At(ram, ssd); err == nil {
			list = append(list, *e)
		}
	}
	return list
}
