package usage

import "github.com/shaledb/shale/internal/bill"

// Prices are what tenants are charged. The tags make settings of the fields: see package config.
type Prices struct {
	Samples bill.Dollars `name:"price.million-samples" default:"0" placeholder:"DOLLARS" help:"What the usage report charges a tenant for a million stored samples, histograms and exemplars, in dollars."`
	Lines   bill.Dollars `name:"price.gigabyte-lines" default:"0" placeholder:"DOLLARS" help:"What the usage report charges a tenant for 10^9 bytes of stored log lines, in dollars."`
	Series  bill.Dollars `name:"price.thousand-series-day" default:"0" placeholder:"DOLLARS" help:"What the usage report charges a tenant for a thousand active series on one day, in dollars."`
	// The default is the list price of S3 Standard in us-east-1.
	Stored bill.Dollars `name:"price.gigabyte-month" default:"0.023" placeholder:"DOLLARS" help:"What the usage report charges a tenant for 10^9 bytes in the bucket during 30 days, in dollars."`
}

// Cost returns what a tenant is charged for its usage.
func (p *Prices) Cost(t *Total, reads *bill.Prices) bill.Dollars {
	return bill.Dollars(float64(t.Samples)/1e6)*p.Samples + bill.Dollars(float64(t.LineBytes)/1e9)*p.Lines +
		bill.Dollars(float64(t.SeriesDays)/1e3)*p.Series + bill.Dollars(float64(t.StoredByteDays)/1e9/30)*p.Stored +
		reads.Cost(t.BucketRequests, t.BytesRead)
}
