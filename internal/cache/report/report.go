package report

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/bill"
	"github.com/shaledb/shale/internal/cache/curve"
	"github.com/shaledb/shale/internal/cache/ledger"
	"github.com/shaledb/shale/internal/cache/record"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/plan/cluster"
)

// Report is what GET /api/v1/cache returns.
type Report struct {
	*ledger.Report
	Curves *Curves `json:"curves,omitempty"`
}

// Curves are what caches of other sizes would have done in the last hours.
type Curves struct {
	Hours   int     `json:"hours"`
	Seconds float64 `json:"seconds"`
	// Share is the least share of the keys that was simulated.
	Share  float64      `json:"sampled_share"`
	Sizes  curve.Sizes  `json:"sizes"`
	Actual curve.Actual `json:"actual"`
	// RAM and SSD are along one tier, the other one as it is.
	RAM []curve.Estimate `json:"ram"`
	SSD []curve.Estimate `json:"ssd"`
}

// WhatIf is what GET /api/v1/cache/what-if returns.
type WhatIf struct {
	Hours   int     `json:"hours"`
	Seconds float64 `json:"seconds"`
	Share   float64 `json:"sampled_share"`
	// Measured is the first-touch hit ratio that the tiers really had; Now is what the simulation says of them,
	// and Then what it says of the sizes that were asked for.
	Measured float64 `json:"measured_first_touch_hit_ratio"`
	Now      Costed  `json:"now"`
	Then     Costed  `json:"then"`
	// Limit is the requests a second that the provider gives a prefix; 0: none is known.
	Limit float64 `json:"provider_requests_per_second,omitempty"`
}

// Costed is an estimate with its price.
type Costed struct {
	*curve.Estimate
	// MemoryBytes is the whole memory budget that the memory for pages is a share of.
	MemoryBytes float64 `json:"memory_bytes"`
	// In dollars a month.
	BucketDollars float64 `json:"bucket_dollars_per_month"`
	MemoryDollars float64 `json:"memory_dollars_per_month"`
	SSDDollars    float64 `json:"ssd_dollars_per_month"`
}

// Cache answers for the cache of a server.
type Cache struct {
	Ledger   *ledger.Ledger
	Sampler  *curve.Sampler
	Recorder *record.Recorder
	// MemoryBytes is the memory budget of the server.
	MemoryBytes int64
	Prices      bill.Prices
	// Limit is the requests a second that the provider gives a prefix; 0: none is known.
	Limit  float64
	Logger *slog.Logger
}

// allHours is more hours than are kept.
const allHours = 1 << 20

// Report returns a [Report].
func (c *Cache) Report() any {
	r := &Report{Report: c.Ledger.Report()}
	s, err := curve.Add(c.Sampler.Hours(24))
	if err != nil {
		return r
	}
	r.Curves = &Curves{
		Hours: s.Hours, Seconds: s.Seconds, Share: s.Share, Sizes: s.Sizes, Actual: s.Actual, RAM: s.Curve(true), SSD: s.Curve(false),
	}
	return r
}

// WhatIf returns a [WhatIf] for the sizes of the parameters ram and ssd, by the traffic of the last hours.
func (c *Cache) WhatIf(form url.Values) (any, error) {
	hours := allHours
	if text := form.Get("hours"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%w: hours: expected a number of at least 1, got %q", model.ErrInvalid, text)
		}
		hours = n
	}
	s, err := curve.Add(c.Sampler.Hours(hours))
	if err != nil {
		return nil, err
	}
	ramNow, ssdNow := 1.0, 1.0
	if s.Sizes.NoSSD {
		ssdNow = 0
	}
	ram, err := factor("ram", form.Get("ram"), c.MemoryBytes, ramNow)
	if err != nil {
		return nil, err
	}
	ssd, err := factor("ssd", form.Get("ssd"), s.Sizes.SSD, ssdNow)
	if err != nil {
		return nil, err
	}
	if s.Sizes.NoSSD && strings.HasSuffix(form.Get("ssd"), "x") {
		return nil, fmt.Errorf("%w: ssd: there is no SSD cache, so expected a size such as 10GiB, got %q", model.ErrInvalid, form.Get("ssd"))
	}
	w := &WhatIf{Hours: s.Hours, Seconds: s.Seconds, Share: s.Share, Limit: c.Limit}
	if s.Actual.First > 0 {
		w.Measured = float64(s.Actual.Memory+s.Actual.Later) / float64(s.Actual.First)
	}
	if w.Now, err = c.cost(s, ramNow, ssdNow); err != nil {
		return nil, err
	}
	w.Then, err = c.cost(s, ram, ssd)
	return w, err
}

// factor reads a size: a multiple such as 4x of the present one, or bytes.
func factor(name, text string, now int64, otherwise float64) (float64, error) {
	if text == "" {
		return otherwise, nil
	}
	if times, ok := strings.CutSuffix(text, "x"); ok {
		f, err := strconv.ParseFloat(times, 64)
		if err != nil || !(f >= 0) {
			return 0, fmt.Errorf("%w: %s: expected a multiple such as 4x or a size such as 100GiB, got %q", model.ErrInvalid, name, text)
		}
		return f, nil
	}
	var size config.Size
	if err := size.UnmarshalText([]byte(text)); err != nil {
		return 0, fmt.Errorf("%w: %s: expected a multiple such as 4x or a size such as 100GiB, got %q", model.ErrInvalid, name, text)
	}
	return float64(size) / float64(max(now, 1)), nil
}

// cost returns an estimate with its price.
func (c *Cache) cost(s *curve.Sum, ram, ssd float64) (Costed, error) {
	e, err := s.At(ram, ssd)
	if err != nil {
		return Costed{}, err
	}
	const month = cluster.SecondsPerMonth
	memory := float64(c.MemoryBytes) * ram
	return Costed{
		Estimate: e, MemoryBytes: memory,
		BucketDollars: float64(c.Prices.Cost(int64(e.Requests*month), int64(e.BucketBytes*month))),
		MemoryDollars: memory / 1e9 * cluster.DollarsPerMemoryGB, SSDDollars: e.SSDBytes / 1e9 * cluster.DollarsPerDiskGB,
	}, nil
}

const (
	mostRecorded    = 24 * time.Hour
	mostRecordBytes = 1 << 30
)

// Record writes a trace for the time and up to the size in the parameters for and max-bytes.
func (c *Cache) Record(r *http.Request, w http.ResponseWriter) error {
	form := r.URL.Query()
	length, err := config.ParseDuration(cmp.Or(form.Get("for"), "1m"))
	if err != nil || length < time.Second || length > mostRecorded {
		return fmt.Errorf("%w: for: expected a time between 1s and %s, got %q", model.ErrInvalid, mostRecorded, form.Get("for"))
	}
	size := config.Size(64 << 20)
	if text := form.Get("max-bytes"); text != "" {
		if err := size.UnmarshalText([]byte(text)); err != nil || size < 1 || size > mostRecordBytes {
			return fmt.Errorf("%w: max-bytes: expected a size up to 1GiB, got %q", model.ErrInvalid, text)
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), length)
	defer cancel()
	control := http.NewResponseController(w)
	// The server bounds responses to queries, which end earlier.
	_ = control.SetWriteDeadline(time.Now().Add(length + time.Minute))
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	dropped, err := c.Recorder.Write(ctx, w, int64(size), func() { _ = control.Flush() })
	if dropped > 0 {
		c.Logger.Warn("a trace of the cache has gaps", "touches_left_out", dropped)
	}
	return err
}
