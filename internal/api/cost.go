package api

import (
	"strconv"

	"github.com/shaledb/shale/internal/model"
)

// costItem is one item of the statement of cost. In JSON it is spelled like the statistics of Prometheus.
type costItem struct {
	header, json string
	value        int64
}

// textItems is the number of items at the end of costItems that are about log lines.
const textItems = 4

func costItems(c *model.Cost) [15]costItem {
	return [...]costItem{
		{"series", "series", c.Series.Load()},
		{"samples", "samples", c.Samples.Load()},
		{"head-buffers", "headBuffers", c.HeadBuffers.Load()},
		{"head-parts", "headParts", c.HeadParts.Load()},
		{"blocks", "blocks", c.Blocks.Load()},
		{"pages-ram", "pagesRAM", c.PagesRAM.Load()},
		{"pages-disk", "pagesDisk", c.PagesDisk.Load()},
		{"pages-shared", "pagesShared", c.PagesShared.Load()},
		{"pages-bucket", "pagesBucket", c.PagesBucket.Load()},
		{"bytes-bucket", "bytesBucket", c.BytesBucket.Load()},
		{"bucket-requests", "bucketRequests", c.BucketRequests.Load()},
		{"text-pages", "textPages", c.TextPages.Load()},
		{"text-pages-skipped", "textPagesSkipped", c.TextPagesSkipped.Load()},
		{"text-bytes", "textBytes", c.TextBytes.Load()},
		{"text-lines", "textLines", c.TextLines.Load()},
	}
}

// costHeader returns the value of the header Shale-Cost: key=value, key=value, without zeros.
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

// AppendCost appends the statement as a JSON object. For metrics it leaves out the items about log lines.
func AppendCost(b []byte, c *model.Cost, signal model.Signal) []byte {
	all := costItems(c)
	items := all[:]
	if signal == model.Metrics {
		items = items[:len(items)-textItems]
	}
	b = append(b, '{')
	for i, it := range items {
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
