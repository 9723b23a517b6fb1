package prom

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// TSDBStatus counts the series of a tenant, in the shape of Prometheus. The lists have the largest values
// first.
type TSDBStatus struct {
	HeadStats                   HeadStats  `json:"headStats"`
	SeriesCountByMetricName     []TSDBStat `json:"seriesCountByMetricName"`
	LabelValueCountByLabelName  []TSDBStat `json:"labelValueCountByLabelName"`
	MemoryInBytesByLabelName    []TSDBStat `json:"memoryInBytesByLabelName"`
	SeriesCountByLabelValuePair []TSDBStat `json:"seriesCountByLabelValuePair"` // Name is name=value
}

// HeadStats describe the data that is not in the bucket yet. Times are those of the oldest and the newest
// sample, in Unix milliseconds. Without samples they are [NoMinTime] and [NoMaxTime], as in Prometheus.
type HeadStats struct {
	NumSeries     uint64 `json:"numSeries"`
	NumLabelPairs int    `json:"numLabelPairs"`
	ChunkCount    int64  `json:"chunkCount"`
	MinTime       int64  `json:"minTime"`
	MaxTime       int64  `json:"maxTime"`
}

// NoMinTime and NoMaxTime are the times of a head without samples.
const (
	NoMinTime = math.MaxInt64
	NoMaxTime = math.MinInt64
)

// TSDBStat is one entry of a list.
type TSDBStat struct {
	Name  string `json:"name"`
	Value uint64 `json:"value"`
}

// RuntimeInfo describes the process, in the shape of Prometheus.
type RuntimeInfo struct {
	StartTime           time.Time `json:"startTime"`
	CWD                 string    `json:"CWD"`
	Hostname            string    `json:"hostname"`
	ServerTime          time.Time `json:"serverTime"`
	ReloadConfigSuccess bool      `json:"reloadConfigSuccess"`
	LastConfigTime      time.Time `json:"lastConfigTime"`
	CorruptionCount     int64     `json:"corruptionCount"`
	GoroutineCount      int       `json:"goroutineCount"`
	GOMAXPROCS          int       `json:"GOMAXPROCS"`
	GOMEMLIMIT          int64     `json:"GOMEMLIMIT"`
	GOGC                string    `json:"GOGC"`
	GODEBUG             string    `json:"GODEBUG"`
	StorageRetention    string    `json:"storageRetention"`
}

// maxTSDBLines and defaultTSDBLines are upstream's bounds on each list of status/tsdb.
const (
	maxTSDBLines     = 10_000
	defaultTSDBLines = 10
)

func (h *Handler) tsdb(r *api.Request) (*api.Response, error) {
	limit := defaultTSDBLines
	if s := r.Form.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		switch {
		case err != nil || n < 1:
			return nil, badData("limit must be a positive number")
		case n > maxTSDBLines:
			return nil, badData("limit must not exceed %d", maxTSDBLines)
		}
		limit = n
	}
	var status TSDBStatus
	if h.o.TSDB != nil {
		var err error
		if status, err = h.o.TSDB(r.Context(), r.Tenant(), limit, r.Quota, r.Cost); err != nil {
			return nil, err
		}
	}
	for _, list := range []*[]TSDBStat{&status.SeriesCountByMetricName, &status.LabelValueCountByLabelName,
		&status.MemoryInBytesByLabelName, &status.SeriesCountByLabelValuePair} {
		if *list == nil {
			*list = []TSDBStat{}
		}
		*list = (*list)[:min(len(*list), limit)]
	}
	return jsonResponse(status)
}

func (h *Handler) flags(*api.Request) (*api.Response, error) {
	flags := map[string]string{}
	if h.o.Flags != nil {
		if f := h.o.Flags(); f != nil {
			flags = f
		}
	}
	return jsonResponse(flags)
}

func (h *Handler) config(*api.Request) (*api.Response, error) {
	text := ""
	if h.o.Config != nil {
		text = h.o.Config()
	}
	return success(func(b *body) {
		b.Raw(`{"yaml":`)
		b.Str(text)
		b.Raw("}")
	}), nil
}

func (h *Handler) runtimeInfo(*api.Request) (*api.Response, error) {
	var info RuntimeInfo
	if h.o.Runtime != nil {
		info = h.o.Runtime()
	}
	return jsonResponse(info)
}

// jsonResponse returns a small value as JSON.
func jsonResponse(v any) (*api.Response, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: encoding a response: %w", model.ErrCorrupt, err)
	}
	return constant(string(text))(nil)
}

// constant serves data that never changes.
func constant(data string) func(*api.Request) (*api.Response, error) {
	return func(*api.Request) (*api.Response, error) {
		return success(func(b *body) { b.Raw(data) }), nil
	}
}

func unknown(*api.Request) (*api.Response, error) {
	return nil, &api.Error{Kind: typeNotFound, Status: http.StatusNotFound, Err: errors.New("no such endpoint")}
}

func (h *Handler) buildInfo(*api.Request) (*api.Response, error) {
	return success(func(b *body) {
		b.Raw(`{"application":"Shale",`)
		b.VersionMembers(&h.o.Version)
		b.Raw("}")
	}), nil
}

// version is buildInfo without an envelope, and of the media type that Prometheus gives it.
func (h *Handler) version(*api.Request) (*api.Response, error) {
	return &api.Response{ContentType: "text/plain; charset=utf-8", Write: func(b *api.Body) error {
		b.Raw("{")
		b.VersionMembers(&h.o.Version)
		b.Raw("}\n")
		return nil
	}}, nil
}

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
