package prom

import (
	"strconv"

	"github.com/shaledb/shale/internal/model"
)

// costItem is one line of the statement of cost. The spelling in JSON is that of upstream's statistics.
type costItem struct {
	header, json string
	value        int64
}

func costItems(c *model.Cost) [10]costItem {
	return [...]costItem{
		{"series", "series", c.Series.Load()},
		{"samples", "samples", c.Samples.Load()},
		{"head-buffers", "headBuffers", c.HeadBuffers.Load()},
		{"head-parts", "headParts", c.HeadParts.Load()},
		{"blocks", "blocks", c.Blocks.Load()},
		{"pages-ram", "pagesRAM", c.PagesRAM.Load()},
		{"pages-disk", "pagesDisk", c.PagesDisk.Load()},
		{"pages-bucket", "pagesBucket", c.PagesBucket.Load()},
		{"bytes-bucket", "bytesBucket", c.BytesBucket.Load()},
		{"bucket-requests", "bucketRequests", c.BucketRequests.Load()},
	}
}

// costHeader is the statement as the value of a header: key=value, key=value, without the zeros.
func costHeader(c *model.Cost) string {
	var b []byte
	for _, it := range costItems(c) {
		if it.value == 0 {
			continue
		}
		if len(b) > 0 {
			b = append(b, ", "...)
		}
		b = append(b, it.header...)
		b = append(b, '=')
		b = strconv.AppendInt(b, it.value, 10)
	}
	if len(b) == 0 {
		return "none"
	}
	return string(b)
}

// appendCost appends the statement as a JSON object.
func appendCost(b []byte, c *model.Cost) []byte {
	b = append(b, '{')
	for i, it := range costItems(c) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, it.json...)
		b = append(b, `":`...)
		b = strconv.AppendInt(b, it.value, 10)
	}
	return append(b, '}')
}
