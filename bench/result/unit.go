package result

import (
	"fmt"
	"math"
)

// unit is the title and the format of a figure.
type unit struct {
	title string // over a column
	// less is set where less is better; more where more is. Neither is set where a figure only describes.
	less, more bool
	write      func(v float64) string
}

// unitOf returns the unit of a figure.
func unitOf(name string) (unit, bool) {
	u, known := unitTable()[name]
	return u, known
}

func unitTable() map[string]unit {
	return map[string]unit{
		"samples/s":               {title: "samples/s", more: true, write: count},
		"cpu-s/M":                 {title: "CPU-s per million, at the end", less: true, write: figures},
		"cpu-s/M-settled":         {title: "CPU-s per million, settled", less: true, write: figures},
		"cpu-share":               {title: "cores in use", less: true, write: figures},
		"rss-B":                   {title: "RSS", less: true, write: Bytes},
		"peak-B":                  {title: "peak RSS", less: true, write: Bytes},
		"settled-rss-B":           {title: "RSS, settled", less: true, write: Bytes},
		"settled-s":               {title: "s until settled", less: true, write: figures},
		"disk-B/sample":           {title: "bytes a sample", less: true, write: figures},
		"disk-B":                  {title: "on disk", less: true, write: Bytes},
		"writes/s":                {title: "write calls/s", less: true, write: count},
		"write-B/s":               {title: "written/s", less: true, write: Bytes},
		"device-writes/s":         {title: "writes of the device/s", less: true, write: figures},
		"syncs/s":                 {title: "journal syncs/s", less: true, write: figures},
		"p50-s":                   {title: "p50", less: true, write: Seconds},
		"first-s":                 {title: "first time", less: true, write: Seconds},
		"answer-B":                {title: "response", write: Bytes},
		"p99-s":                   {title: "p99", less: true, write: Seconds},
		"loader-cpu-s/M":          {title: "loader's CPU-s per million", less: true, write: figures},
		"line-B":                  {title: "bytes of lines", write: Bytes},
		"line-B/s":                {title: "bytes of lines a second", more: true, write: Bytes},
		"cpu-s/GB":                {title: "CPU-s per GB, at the end", less: true, write: figures},
		"cpu-s/GB-settled":        {title: "CPU-s per GB, merged and shipped", less: true, write: figures},
		"loader-cpu-s/GB":         {title: "loader's CPU-s per GB", less: true, write: figures},
		"disk/raw":                {title: "disk over raw", less: true, write: figures},
		"cold-s":                  {title: "cold", less: true, write: Seconds},
		"result-lines":            {title: "lines of the result", write: count},
		"scanned-B":               {title: "lines looked at", less: true, write: Bytes},
		"pages-read":              {title: "pages read", less: true, write: count},
		"pages-skipped":           {title: "pages skipped", more: true, write: count},
		"known-B/key":             {title: "known set, bytes a key", less: true, write: figures},
		"series":                  {title: "series", write: count},
		"samples":                 {title: "samples", write: count},
		"parts":                   {title: "parts", less: true, write: count},
		"cpu-s":                   {title: "CPU-s", less: true, write: figures},
		"refreshes":               {title: "refreshes", write: count},
		"fresh-cpu-s":             {title: "CPU-s, all computed", write: figures},
		"wall-s":                  {title: "time", less: true, write: Seconds},
		"fresh-wall-s":            {title: "time, all computed", write: Seconds},
		"fresh-bucket-requests":   {title: "bucket requests, all computed", write: figures},
		"different":               {title: "different results", less: true, write: count},
		"bucket-requests":         {title: "bucket requests", less: true, write: figures},
		"stalled":                 {title: "of them stalled", write: count},
		"bucket-B":                {title: "bytes from the bucket", less: true, write: Bytes},
		"bucket-request-s":        {title: "a bucket request", write: Seconds},
		"retries":                 {title: "retries", less: true, write: count},
		"growth-rss-%":            {title: "RSS, last tenth to second, %", less: true, write: figures},
		"growth-parts-%":          {title: "parts, last tenth to second, %", less: true, write: figures},
		"growth-p99-%":            {title: "p99, last tenth to second, %", less: true, write: figures},
		"before-rss-B":            {title: "RSS before", less: true, write: Bytes},
		"bound-B":                 {title: "bound", write: Bytes},
		"result-series":           {title: "series of the result", write: count},
		"result-points":           {title: "points of the result", write: count},
		"scanned-lines":           {title: "lines read", less: true, write: count},
		"store-pages":             {title: "pages of all kinds", less: true, write: count},
		"samples-scanned/s":       {title: "samples scanned/s", more: true, write: count},
		"disk-index-B/sample":     {title: "of it index", less: true, write: figures},
		"lost":                    {title: "lost", less: true, write: count},
		"acked":                   {title: "acknowledged", write: count},
		"lag-s":                   {title: "sender's lag", less: true, write: Seconds},
		"blocks":                  {title: "blocks", less: true, write: count},
		"compacted-disk-B/sample": {title: "bytes a sample, day compacted", less: true, write: figures},
	}
}

// figures writes three significant figures.
func figures(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	case a >= 0.001:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.1g", v)
}

func count(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.2f M", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.0f k", v/1e3)
	case v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	}
	return figures(v)
}

// Bytes writes a size in decimal units, to three figures.
func Bytes(v float64) string {
	switch {
	case v >= 1e9:
		return figures(v/1e9) + " GB"
	case v >= 1e6:
		return figures(v/1e6) + " MB"
	case v >= 1e3:
		return figures(v/1e3) + " kB"
	}
	return figures(v) + " B"
}

// Seconds writes a time, to three figures.
func Seconds(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 1e-3:
		return figures(v*1e6) + " µs"
	case v < 1:
		return figures(v*1e3) + " ms"
	}
	return figures(v) + " s"
}

// Describe writes a figure with its title.
func Describe(name string, v float64) string {
	u, ok := unitOf(name)
	if !ok {
		return fmt.Sprintf("%s %g", name, v)
	}
	return u.title + " " + u.write(v)
}

// Title returns the title of a figure's column.
func Title(name string) string {
	u, _ := unitOf(name)
	return u.title
}
