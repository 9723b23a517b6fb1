package prom

import "github.com/shaledb/shale/internal/api"

// Block describes a block of the bucket, in the shape of Prometheus.
type Block struct {
	ID string `json:"ulid"`
	// MinTime is the time of the oldest sample, in Unix milliseconds. MaxTime is later than the newest one.
	MinTime    int64           `json:"minTime"`
	MaxTime    int64           `json:"maxTime"`
	Stats      BlockStats      `json:"stats"`
	Compaction BlockCompaction `json:"compaction"`
	// Version is that of the file format of Prometheus' index: 1.
	Version int `json:"version"`
}

// BlockStats count the content of a block, of all its tenants.
type BlockStats struct {
	NumSamples uint64 `json:"numSamples,omitempty"`
	NumSeries  uint64 `json:"numSeries,omitempty"`
}

// BlockCompaction says how far a block is compacted: 1 is a block as it was shipped.
type BlockCompaction struct {
	Level int `json:"level"`
}

// blockBytes is the memory of a Block and its text.
const blockBytes = 512

// tsdbBlocks returns the blocks that may hold samples of the tenant, the oldest samples first.
func (h *Handler) tsdbBlocks(r *api.Request) (*api.Response, error) {
	var blocks []Block
	if h.o.Blocks != nil {
		blocks = h.o.Blocks(r.Tenant())
	}
	if err := r.Quota.TakeBytes(blockBytes * int64(len(blocks))); err != nil {
		return nil, err
	}
	if blocks == nil {
		blocks = []Block{}
	}
	return jsonResponse(map[string][]Block{"blocks": blocks})
}
