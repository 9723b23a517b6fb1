package write

import "time"

// Limits bound what one request, one series and all requests together may cost.
type Limits struct {
	// MaxInflightBytes bounds the bytes of all requests that are being worked on, as sent and as decoded.
	MaxInflightBytes int64
	// MaxBodyBytes and MaxDecodedBytes bound one request before and after decompression.
	MaxBodyBytes, MaxDecodedBytes int64
	// MaxLabels, MaxNameBytes and MaxValueBytes bound the label set of one series.
	MaxLabels, MaxNameBytes, MaxValueBytes int
	// MaxAge and MaxFuture bound how far a sample may lie from now; a MaxAge of zero accepts any age.
	MaxAge, MaxFuture time.Duration
}

// Reasons for which single samples or series of a request are left out. They are the values of the label `reason` of
// shale_write_discarded_samples_total.
const (
	ReasonTooOld         = "too_old"
	ReasonTooNew         = "too_far_in_future"
	ReasonTimeRange      = "time_out_of_range"
	ReasonNaN            = "nan"
	ReasonBadLine        = "bad_line"
	ReasonLabels         = "invalid_labels"
	ReasonDuplicateLabel = "duplicate_label_name"
	ReasonTooManyLabels  = "too_many_labels"
	ReasonNameTooLong    = "label_name_too_long"
	ReasonValueTooLong   = "label_value_too_long"
	ReasonOverload       = "overload"
	ReasonUnsupported    = "unsupported_kind"
)

// Result says what became of a batch whose other rows are durable.
type Result struct {
	Stored   int
	Rejected []Rejection
}

// Rejection counts the samples that were left out for one reason and shows the first culprits.
type Rejection struct {
	Reason  string
	Samples int
	// Examples are at most 3 texts of at most 500 bytes.
	Examples []string
}
