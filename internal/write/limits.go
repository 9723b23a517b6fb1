package write

import (
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Limits bound what one request, one series and all requests together may cost.
type Limits struct {
	// MaxInflightBytes bounds the bytes of all requests that are being worked on, as sent and as decoded.
	MaxInflightBytes int64
	// MaxBodyBytes and MaxDecodedBytes bound one request before and after decompression.
	MaxBodyBytes, MaxDecodedBytes int64
	// MaxLabels, MaxNameBytes and MaxValueBytes bound the label set of one series. A stream of logs may have one label more.
	MaxLabels, MaxNameBytes, MaxValueBytes int
	// MaxBuckets bounds the buckets of one native histogram, and its spans and bounds likewise. Zero stands for the most
	// that it may be, [MostBuckets].
	MaxBuckets int
	// MaxAge and MaxFuture bound how far a sample may lie from now; a MaxAge of zero accepts any age.
	MaxAge, MaxFuture time.Duration
	// TenantLines and TenantLineBytes bound the log lines of one tenant a second, and their bytes; a tenant that has been
	// silent may be ahead of them by ten seconds' worth. Zero: no bound.
	TenantLines, TenantLineBytes float64
}

// MostBuckets is the largest MaxBuckets. With as many positive and negative buckets, spans and bounds a histogram takes
// less than the 1 MiB that a stored value may have.
const MostBuckets = 1 << 14

// Check returns an error of class invalid for limits that cannot take effect, since others would be met first.
func (l *Limits) Check() error {
	switch {
	case l.MaxNameBytes > model.MaxLabelBytes || l.MaxValueBytes > model.MaxLabelBytes:
		return fmt.Errorf("%w: limits.label-name-bytes and limits.label-value-bytes may be at most %d: all labels of a series together have no more",
			model.ErrInvalid, model.MaxLabelBytes)
	case l.MaxBuckets < 0 || l.MaxBuckets > MostBuckets:
		return fmt.Errorf("%w: limits.histogram-buckets is %d, and may be at most %d", model.ErrInvalid, l.MaxBuckets, MostBuckets)
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
