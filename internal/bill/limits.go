package bill

import (
	"fmt"
	"math"
	"strconv"
)

// Limits are the budgets and the prices. A budget of 0 bounds nothing.
type Limits struct {
	QueryRequests  int64 `name:"query.max-bucket-requests" type:"count" default:"0" placeholder:"N" min:"0" help:"Most requests to the bucket that one query may make. 0: no limit."`
	QueryBytes     int64 `name:"query.max-bucket-bytes" type:"size" default:"0B" placeholder:"SIZE" min:"0" help:"Most bytes that one query may read from the bucket. 0: no limit."`
	TenantRequests int64 `name:"query.tenant-bucket-requests" tenant:"own" type:"count" default:"0" placeholder:"N" min:"0" help:"Most requests to the bucket per hour for the queries of each tenant, with a burst of one hour's worth. 0: no limit."`
	TenantBytes    int64 `name:"query.tenant-bucket-bytes" tenant:"own" type:"size" default:"0B" placeholder:"SIZE" min:"0" help:"Most bytes per hour that the queries of each tenant may read from the bucket, with a burst of one hour's worth. 0: no limit."`
	AllRequests    int64 `name:"query.all-bucket-requests" type:"count" default:"0" placeholder:"N" min:"0" help:"Most requests to the bucket per hour for all queries of the process, with a burst of one hour's worth. 0: no limit."`
	AllBytes       int64 `name:"query.all-bucket-bytes" type:"size" default:"0B" placeholder:"SIZE" min:"0" help:"Most bytes per hour that all queries of the process may read from the bucket, with a burst of one hour's worth. 0: no limit."`

	Prices Prices `embed:""`
}

// Prices say what reading from the bucket costs. A bucket in a folder is free.
type Prices struct {
	// The defaults are the list prices of S3 Standard in us-east-1: GET requests, and transfer to machines of
	// the same region.
	Requests Dollars `name:"price.million-requests" default:"0.4" placeholder:"DOLLARS" help:"Price of a million GET requests to the bucket, in dollars. It applies to object stores: a bucket in a folder is free."`
	Bytes    Dollars `name:"price.gigabyte" default:"0" placeholder:"DOLLARS" help:"Price of reading 10^9 bytes from the bucket, in dollars. It applies to object stores: a bucket in a folder is free."`
}

// Dollars is an amount of money.
type Dollars float64

// UnmarshalText parses an amount that is not negative.
func (d *Dollars) UnmarshalText(text []byte) error {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(f >= 0) || math.IsInf(f, 1) {
		return fmt.Errorf("%q is not a price; write a number of dollars such as 0.4", text)
	}
	*d = Dollars(f)
	return nil
}

// String returns a text that parses as the same amount.
func (d Dollars) String() string { return strconv.FormatFloat(float64(d), 'f', -1, 64) }

// Cost returns the price of reading requests and bytes.
func (p *Prices) Cost(requests, bytes int64) Dollars {
	return Dollars(float64(requests)/1e6)*p.Requests + Dollars(float64(bytes)/1e9)*p.Bytes
}
