package write

import (
	"cmp"
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Limits bound the cost of one request, of one series, and of all requests together. The tags make settings
// of the fields: see package config.
type Limits struct {
	// MaxAge and MaxFuture bound how far a sample's time may be from now. A MaxAge of zero accepts any age.
	MaxAge time.Duration `name:"max-age" tenant:"own" type:"time" default:"7d" placeholder:"TIME" help:"Oldest sample or log line to accept; older ones are refused and counted. 0: accept any age that retention keeps."`
	// AgeSetting names the setting that MaxAge is the value of; empty means max-age.
	AgeSetting string        `kong:"-"`
	MaxFuture  time.Duration `name:"max-future" tenant:"own" type:"time" default:"10m" placeholder:"TIME" help:"How far in the future a sample or log line may be; later ones are refused and counted."`
	// MaxInflightBytes bounds the bytes of all requests in flight hold, as sent and as decoded.
	MaxInflightBytes int64 `kong:"-"`
	// MaxBodyBytes and MaxDecodedBytes bound one request before and after decompression.
	MaxBodyBytes    int64 `name:"limits.body-bytes" tenant:"own" type:"size" default:"32MiB" placeholder:"SIZE" min:"1KiB" help:"Largest body of one HTTP request, as sent."`
	MaxDecodedBytes int64 `name:"limits.decoded-bytes" tenant:"own" type:"size" default:"128MiB" placeholder:"SIZE" help:"Largest body of one HTTP request after decompression. At least limits.body-bytes."`
	// MaxLabels, MaxNameBytes and MaxValueBytes bound the label set of one series. A log stream may have one
	// label more.
	MaxLabels     int `name:"limits.labels" tenant:"own" type:"count" default:"64" placeholder:"N" min:"1" max:"1024" help:"Most labels of one series."`
	MaxNameBytes  int `name:"limits.label-name-bytes" tenant:"own" type:"size" default:"1KiB" placeholder:"SIZE" min:"16" max:"65535" help:"Longest label name."`
	MaxValueBytes int `name:"limits.label-value-bytes" tenant:"own" type:"size" default:"4KiB" placeholder:"SIZE" min:"16" max:"65535" help:"Longest label value. A Graphite path is a label value."`
	// MaxBuckets bounds the buckets of one native histogram, and separately its spans and its bounds. Zero
	// means [MostBuckets].
	MaxBuckets int `name:"limits.histogram-buckets" tenant:"own" type:"count" default:"4096" placeholder:"N" min:"1" max:"16384" help:"Most buckets of one native histogram on either side of zero."`
	// TenantSamples, TenantLines, TenantLineBytes and TenantRequestBytes bound what one tenant may push per
	// second. A tenant that has been silent may run ahead by TenantBurst (10 s). Zero means no limit.
	TenantSamples      int64         `name:"limits.tenant-samples" tenant:"own" type:"count" default:"10000000" placeholder:"N" min:"0" help:"Most samples per second of each tenant, with histograms and exemplars, and a burst of limits.tenant-burst. 0: no limit."`
	TenantLines        int64         `name:"limits.tenant-lines" tenant:"own" type:"count" default:"5000000" placeholder:"N" min:"0" help:"Most log lines per second of each tenant, with a burst of limits.tenant-burst. 0: no limit."`
	TenantLineBytes    int64         `name:"limits.tenant-line-bytes" tenant:"own" type:"size" default:"1GiB" placeholder:"SIZE" min:"0" help:"Most bytes of log lines per second of each tenant, with a burst of limits.tenant-burst. 0: no limit."`
	TenantRequestBytes int64         `name:"limits.tenant-request-bytes" tenant:"own" type:"size" default:"4GiB" placeholder:"SIZE" min:"0" help:"Most bytes per second of the write requests of each tenant over HTTP, as sent and as decoded together, with a burst of limits.tenant-burst. 0: no limit."`
	TenantBurst        time.Duration `name:"limits.tenant-burst" tenant:"own" type:"time" default:"10s" placeholder:"TIME" min:"1s" max:"1h" help:"How many seconds of its rate limits a silent tenant saves up for a burst."`
	// TenantRequests bounds the requests of one tenant over HTTP at one time, which keep connections.
	TenantRequests int64 `name:"limits.tenant-requests" tenant:"own" type:"count" default:"256" placeholder:"N" min:"0" help:"Most write requests of each tenant over HTTP at one time. 0: no limit but limits.connections."`
}

// MostBuckets is the largest MaxBuckets. A histogram with that many positive and negative buckets,
// spans and bounds stays below 1 MiB, the most that a stored value may have.
const MostBuckets = 1 << 14

// OldestAge describes MaxAge for an error text: the setting and its value.
func (l *Limits) OldestAge() string {
	return fmt.Sprintf("%s (%s)", cmp.Or(l.AgeSetting, "max-age"), l.MaxAge)
}

// Check returns an error of class invalid for limits that could never take effect.
func (l *Limits) Check() error {
	switch {
	case l.MaxNameBytes > model.MaxLabelBytes || l.MaxValueBytes > model.MaxLabelBytes:
		return fmt.Errorf("%w: limits.label-name-bytes and limits.label-value-bytes may be at most %d, the limit for all labels of a series together",
			model.ErrInvalid, model.MaxLabelBytes)
	case l.MaxBuckets < 0 || l.MaxBuckets > MostBuckets:
		return fmt.Errorf("%w: limits.histogram-buckets: expected 0 to %d, got %d", model.ErrInvalid, MostBuckets, l.MaxBuckets)
	}
	return nil
}

// Buckets returns how many buckets one histogram may have.
func (l *Limits) Buckets() int {
	if l.MaxBuckets <= 0 || l.MaxBuckets > MostBuckets {
		return MostBuckets
	}
	return l.MaxBuckets
}
