package ledger

import (
	"cmp"
	"slices"
	"time"
)

// Report is what the ledger says, as the member "tiers" and its neighbours of GET /api/v1/cache.
type Report struct {
	// Since is when the process began to count, in Unix seconds.
	Since int64 `json:"since"`
	// HourSeconds is the length of what is called the last hour: less after a start.
	HourSeconds float64  `json:"hour_seconds"`
	Tiers       []Row    `json:"tiers"`
	Ages        []Age    `json:"ages"`
	Tenants     []Tenant `json:"tenants"`
}

// Row is one tier.
type Row struct {
	Name       string `json:"name"`
	Bytes      int64  `json:"bytes"`
	LimitBytes int64  `json:"limit_bytes"`
	Entries    int64  `json:"entries,omitempty"`
	QueueBytes int64  `json:"queue_bytes,omitempty"`
	// Hour has the figures of the last hour, and Total those since the start.
	Hour  Figures `json:"hour"`
	Total Figures `json:"total"`
	// P50 and P99 are times of reads since the start, within a factor of 2.
	P50 float64 `json:"read_p50_seconds,omitempty"`
	P99 float64 `json:"read_p99_seconds,omitempty"`
}

// Figures are the counts of a tier in some time, and what follows from them. Ratios without anything to
// divide by are 0.
type Figures struct {
	Asked      int64 `json:"asked"`
	Hits       int64 `json:"hits"`
	First      int64 `json:"first_touches"`
	FirstHits  int64 `json:"first_touch_hits"`
	AskedBytes int64 `json:"asked_bytes"`
	HitBytes   int64 `json:"hit_bytes"`

	HitRatio      float64 `json:"hit_ratio"`
	FirstHitRatio float64 `json:"first_touch_hit_ratio"`
	ByteHitRatio  float64 `json:"byte_hit_ratio"`

	Admitted     int64 `json:"admitted"`
	Refused      int64 `json:"refused"`
	Evicted      int64 `json:"evicted"`
	Unread       int64 `json:"evicted_unread"`
	EvictedBytes int64 `json:"evicted_bytes"`
	// Churn is the share of the evictions of values that no query wanted since they entered.
	Churn float64 `json:"churn"`
	// Turnovers is how often an hour the whole content was replaced.
	Turnovers float64 `json:"turnovers_per_hour"`
	// Residence is the mean time that the evicted values had been in the tier.
	Residence    float64 `json:"residence_seconds,omitempty"`
	WrittenBytes int64   `json:"written_bytes"`
	// Reads are requests to a device or a server, and ReadBytes what they read.
	Reads       int64   `json:"reads"`
	ReadBytes   int64   `json:"read_bytes"`
	ReadSeconds float64 `json:"read_seconds"`
}

// Age is how much of what queries asked for was of an age.
type Age struct {
	// Below is the bound in seconds; 0: there is none.
	Below int64 `json:"below_seconds"`
	// Local says that the data is in the data folder, and newer than what is in the bucket.
	Local bool `json:"local,omitempty"`
	// First is the first touches of the last hour, and Bytes the bytes of all touches. Bucket is the first
	// touches that only the bucket could serve.
	First  int64 `json:"first_touches"`
	Bytes  int64 `json:"bytes"`
	Bucket int64 `json:"from_bucket"`
}

// Tenant is what a tenant has asked for since the start.
type Tenant struct {
	Name  string       `json:"name"`
	Tiers []TenantTier `json:"tiers"`
}

// TenantTier is a tenant in a tier.
type TenantTier struct {
	Name          string  `json:"name"`
	Asked         int64   `json:"asked"`
	Hits          int64   `json:"hits"`
	First         int64   `json:"first_touches"`
	FirstHits     int64   `json:"first_touch_hits"`
	HitBytes      int64   `json:"hit_bytes"`
	FirstHitRatio float64 `json:"first_touch_hit_ratio"`
	// Bytes is what the tenant has in the tier, as far as the tier knows it.
	Bytes int64 `json:"bytes"`
}

// Report returns the figures of now.
func (l *Ledger) Report() *Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	hour, length := l.lastHour()
	total := l.sums(nil)
	sinceStart := time.Duration(l.now() - l.began)
	r := &Report{Since: l.began / int64(time.Second), HourSeconds: length.Seconds(), Tiers: []Row{}, Ages: []Age{}, Tenants: []Tenant{}}
	var states []State
	for i, t := range l.tiers {
		s := t.State()
		states = append(states, s)
		row := Row{
			Name: t.name, Bytes: s.Bytes, LimitBytes: s.LimitBytes, Entries: s.Entries, QueueBytes: s.QueueBytes,
			Hour: figures(&hour[i], s.LimitBytes, length), Total: figures(&total[i], s.LimitBytes, sinceStart),
		}
		if t.reads.Load() > 0 {
			row.P50, row.P99 = t.quantile(0.5).Seconds(), t.quantile(0.99).Seconds()
		}
		r.Tiers = append(r.Tiers, row)
	}
	r.Ages = l.ages(hour)
	for _, t := range l.tenants.list() {
		if row, any := l.tenant(t, states); any {
			r.Tenants = append(r.Tenants, row)
		}
	}
	slices.SortStableFunc(r.Tenants, func(a, b Tenant) int { return cmp.Compare(b.asked(), a.asked()) })
	return r
}

// figures turns counts into figures.
func figures(s *sums, limit int64, length time.Duration) Figures {
	f := Figures{
		Asked: s.hits.touches + s.missed.touches, Hits: s.hits.touches,
		First: s.hits.first + s.missed.first, FirstHits: s.hits.first,
		AskedBytes: s.hits.bytes + s.missed.bytes, HitBytes: s.hits.bytes,
		Admitted: s.admitted, Refused: s.refused, Evicted: s.evicted, Unread: s.unread, EvictedBytes: s.evictedBytes,
		WrittenBytes: s.written, Reads: s.reads, ReadBytes: s.readBytes, ReadSeconds: float64(s.readSeconds) / 1e9,
	}
	f.HitRatio, f.FirstHitRatio, f.ByteHitRatio = ratio(f.Hits, f.Asked), ratio(f.FirstHits, f.First), ratio(f.HitBytes, f.AskedBytes)
	f.Churn = ratio(f.Unread, f.Evicted)
	if s.resident > 0 {
		f.Residence = float64(s.residence) / float64(s.resident) / 1e9
	}
	if hours := length.Hours(); limit > 0 && hours > 0 {
		f.Turnovers = float64(f.EvictedBytes) / float64(limit) / hours
	}
	return f
}

func ratio(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// ages returns the histogram of the tiers on the way.
func (l *Ledger) ages(hour []sums) []Age {
	rows := make([]Age, places)
	for i := range rows {
		if i < len(ages) {
			rows[i].Below = ages[i]
		}
		rows[i].Local = i == localAge
		for j, t := range l.tiers {
			if t.aside {
				continue
			}
			rows[i].First += hour[j].ages[i].first
			rows[i].Bytes += hour[j].ages[i].bytes
			if t.name == Bucket {
				rows[i].Bucket += hour[j].ages[i].first
			}
		}
	}
	return rows
}

// tenant returns the row of a tenant, and whether it has asked for anything.
func (l *Ledger) tenant(t *tenant, states []State) (row Tenant, any bool) {
	row.Name = t.name
	s := l.sums(t)
	for i, tier := range l.tiers {
		f := figures(&s[i], 0, 0)
		cell := TenantTier{
			Name: tier.name, Asked: f.Asked, Hits: f.Hits, First: f.First, FirstHits: f.FirstHits, HitBytes: f.HitBytes, FirstHitRatio: f.FirstHitRatio,
		}
		if shares := states[i].Shares; int(t.number) < len(shares) {
			cell.Bytes = shares[t.number]
		}
		any = any || cell.Asked > 0 || cell.Bytes > 0
		row.Tiers = append(row.Tiers, cell)
	}
	return row, any
}

// asked is the sum by which tenants are sorted.
func (t *Tenant) asked() (n int64) {
	for i := range t.Tiers {
		n += t.Tiers[i].Hits
	}
	return n
}
