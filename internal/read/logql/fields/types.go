package fields

import (
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Type is the type of the values of a field, in Loki's words.
type Type string

// The types, in the order in which they are tried.
const (
	Int      Type = "int"
	Float    Type = "float"
	Boolean  Type = "boolean"
	Duration Type = "duration"
	Bytes    Type = "bytes"
	String   Type = "string"
)

// TypeOf returns the first type that a value can be read as.
func TypeOf(value string) Type {
	if _, err := strconv.ParseInt(value, 10, 64); err == nil {
		return Int
	}
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return Float
	}
	if _, err := strconv.ParseBool(value); err == nil {
		return Boolean
	}
	if _, err := time.ParseDuration(value); err == nil {
		return Duration
	}
	if _, err := humanize.ParseBytes(value); err == nil {
		return Bytes
	}
	return String
}

// forQuery returns a value in the form in which a query compares it as a number: a size such as "5 MB" loses
// its space. Loki rewrites all sizes, even to rounded ones and durations (5m becomes 5.0MB); a filter with
// those would select other lines, so a value is rewritten only if the result has the same size.
func forQuery(value string) string {
	if TypeOf(value) != Bytes || value[len(value)-1] <= '9' {
		return value
	}
	n, _ := humanize.ParseBytes(value) // TypeOf has parsed it
	short := strings.ReplaceAll(humanize.Bytes(n), " ", "")
	if again, err := humanize.ParseBytes(short); err != nil || again != n {
		return value
	}
	return short
}
