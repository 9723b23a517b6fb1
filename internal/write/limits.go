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
	MaxAge time.Duration `name:"max-age" type:"time" default:"7d" placeholder:"TIME" help:"Oldest sample or log line to accept; older ones are refused and counted. 0: accept any age that retention keeps."`
	// AgeSetting names the setting that MaxAge is the value of; empty means max-age.
	AgeSetting string        `kong:"-"`
	MaxFuture  time.Duration `name:"max-future" type:"time" default:"10m" placeholder:"TIME" help:"How far ahead of the clock a sample or log line may be; later ones are refused and counted."`
	// MaxInflightBytes bounds the bytes of all requests in flight hold, as sent and as decoded.
	MaxInflightBytes int64 `kong:"-"`
	// MaxBodyBytes and MaxDecodedBytes bound one request before and after decompression.
	MaxBodyBytes    int64 `name:"limits.body-bytes" type:"size" default:"32MiB" placeholder:"SIZE" min:"1KiB" help:"Largest body of one HTTP request, as sent."`
	MaxDecodedBytes int64 `name:"limits.decoded-bytes" type:"size" default:"128MiB" placeholder:"SIZE" help:"Largest body of one HTTP request after decompression. At least limits.body-bytes."`
	// MaxLabels, MaxNameBytes and MaxValueBytes bound the label set of one series. A log stream may have one
	// label more.
	MaxLabels     int `name:"limits.labels" type:"count" default:"64" placeholder:"N" min:"1" max:"1024" help:"Most labels of one series."`
	MaxNameBytes  int `name:"limits.label-name-bytes" type:"size" default:"1KiB" placeholder:"SIZE" min:"16" max:"65535" help:"Longest label name."`
	MaxValueBytes int `name:"limits.label-value-bytes" type:"size" default:"4KiB" placeholder:"SIZE" min:"16" max:"65535" help:"Longest label value. A Graphite path is a label value."`
	// MaxBuckets bounds the buckets of one native histogram, and separately its spans and its bounds. Zero
	// means [MostBuckets].
	MaxBuckets int `name:"limits.histogram-buckets" type:"count" default:"4096" placeholder:"N" min:"1" max:"16384" help:"Most buckets of one native histogram on either side of zero."`
	// TenantLines and TenantLineBytes bound the log lines, and their bytes, that one tenant may push per
	// second. A tenant that has been silent may exceed them by ten seconds' worth. Zero means no limit.
	TenantLines     int64 `name:"limits.tenant-lines" type:"count" default:"0" placeholder:"N" min:"0" help:"Most log lines per second of each tenant, with a burst of ten seconds' worth. 0: no limit."`
	TenantLineBytes int64 `name:"limits.tenant-line-bytes" type:"size" default:"0" placeholder:"SIZE" min:"0" help:"Most bytes of log lines per second of each tenant, with a burst of ten seconds' worth. 0: no limit."`
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
