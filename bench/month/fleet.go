package month

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Fleet is what the tenants send.
type Fleet struct {
	Tenants int
	// Skew is the exponent of the Zipf distribution of tenants by size, for each signal.
	Skew float64
	// Series send a sample every Interval.
	Series   float64
	Interval time.Duration
	// Streams send so many bytes of lines per second, all together.
	Streams, LineBytes float64
	// Churn is the share of series and streams that are new each day.
	Churn float64
	// Late is the share of rows that arrive after their window has been shipped, up to Lateness.
	Late     float64
	Lateness time.Duration
}

// DefaultFleet returns a fleet that keeps one server busy. The exponent is the one with which YCSB (Cooper et
// al., SoCC 2010) draws skewed keys; LogStore (Cao et al., SIGMOD 2021) and ESDB (Zhang et al., SIGMOD 2022)
// describe tenants of about this skew.
func DefaultFleet() Fleet {
	return Fleet{
		Tenants: 1000, Skew: 0.99, Series: 2e6, Interval: 30 * time.Second, Streams: 1e5, LineBytes: 2e6,
		Churn: 0.2, Late: 0.001, Lateness: 6 * time.Hour,
	}
}

// Bytes in blocks, from docs/benchmarks.md: a gauge takes 0.97 bytes a sample in a shipped block and 0.85 in
// the block of a day; lines take 0.18 of their bytes.
const (
	sampleBytes = 0.84
	seriesBytes = 32 // key, labels and postings of a series or stream
	lineShare   = 0.175
	tenantBytes = 100
	blockBytes  = 4 << 10
	// lineSize is the mean size of a line before compression.
	lineSize = 200
)

// share is what a tenant has in a block.
type share struct {
	tenant int
	series float64
	rows   float64 // samples or lines
}

// stub stands for the bytes of a block.
type stub struct {
	signal model.Signal
	shares []share // by tenant
}

// Read fails: a stub has no bytes.
func (*stub) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// rowBytes returns the stored size of a row.
func rowBytes(s model.Signal) float64 {
	if s == model.Logs {
		return lineSize * lineShare
	}
	return sampleBytes
}

// bytes returns the size of the share in a block.
func (h *share) bytes(s model.Signal) float64 {
	return tenantBytes + h.series*seriesBytes + h.rows*rowBytes(s)
}

func (b *stub) bytes() int64 {
	sum := float64(blockBytes)
	for i := range b.shares {
		sum += b.shares[i].bytes(b.signal)
	}
	return int64(sum)
}

// tenantName returns names that sort like their numbers.
func tenantName(i int) string { return fmt.Sprintf("tenant-%05d", i) }

// rates divides what the fleet sends among its tenants: series, and rows per second. The largest tenants of
// metrics are not those of logs, and names say nothing about sizes.
func (f *Fleet) rates() map[model.Signal][]share {
	sum := 0.0
	for i := range f.Tenants {
		sum += math.Pow(float64(i+1), -f.Skew)
	}
	random := rand.New(rand.NewPCG(1, 2))
	divide := func(series, rows float64) []share {
		all := make([]share, f.Tenants)
		for rank, tenant := range random.Perm(f.Tenants) {
			part := math.Pow(float64(rank+1), -f.Skew) / sum
			all[tenant] = share{tenant, max(1, series*part), rows * part}
		}
		return all
	}
	return map[model.Signal][]share{
		model.Metrics: divide(f.Series, f.Series/f.Interval.Seconds()),
		model.Logs:    divide(f.Streams, f.LineBytes/lineSize),
	}
}

// union returns how many series a tenant has in an interval, if it has some at a time.
func (f *Fleet) union(series float64, of time.Duration) float64 {
	return series * (1 + f.Churn*of.Hours()/24)
}
