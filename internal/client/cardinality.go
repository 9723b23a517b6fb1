package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
)

// Counts are series by metric, label name or value, as the server counts them.
type Counts struct {
	Series        uint64       `json:"series"`
	Before        *uint64      `json:"before"`
	Distinct      uint64       `json:"distinct"`
	Undercount    uint64       `json:"undercount"`
	DistinctError float64      `json:"distinctError"`
	List          []CountEntry `json:"list"`
}

// CountEntry is a metric, a label name or a value. What is nil does not belong to the list.
type CountEntry struct {
	Name       string  `json:"name"`
	Series     uint64  `json:"series"`
	Values     *uint64 `json:"values"`
	ValueBytes *uint64 `json:"valueBytes"`
	Before     *uint64 `json:"before"`
}

// Active are the active series of a tenant, and what creates series.
type Active struct {
	Active int64       `json:"active"`
	New    Creations   `json:"new"`
	Days   []Creations `json:"days"`
}

// Creations are the series that were created in some time.
type Creations struct {
	Day        string       `json:"day"`
	Seconds    float64      `json:"seconds"`
	Series     uint64       `json:"series"`
	Undercount uint64       `json:"undercount"`
	List       []CountEntry `json:"list"`
}

// Unused are the metrics and labels that no query has asked for.
type Unused struct {
	Since    string         `json:"since"`
	Days     int            `json:"days"`
	Full     bool           `json:"full"`
	Series   uint64         `json:"series"`
	Metrics  int            `json:"metrics"`
	Labels   int            `json:"labels"`
	Saved    Saving         `json:"saved"`
	ByMetric []UnusedMetric `json:"byMetric"`
	ByLabel  []UnusedLabel  `json:"byLabel"`
	Relabel  string         `json:"relabel"`
}

// Saving is what dropping something saves.
type Saving struct {
	Series          uint64  `json:"series"`
	SamplesPerDay   float64 `json:"samplesPerDay"`
	BytesPerDay     float64 `json:"bytesPerDay"`
	DollarsPerMonth float64 `json:"dollarsPerMonth"`
}

// UnusedMetric is a metric that no query has asked for.
type UnusedMetric struct {
	Name string `json:"name"`
	Saving
}

// UnusedLabel is a label that no query has asked for.
type UnusedLabel struct {
	Name       string `json:"name"`
	Series     uint64 `json:"series"`
	Values     uint64 `json:"values"`
	ValueBytes uint64 `json:"valueBytes"`
	Droppable  bool   `json:"droppable"`
}

// Cardinality asks for a list of what makes series, and decodes it into counts. It returns the data of the
// response, too.
func (s *Server) Cardinality(ctx context.Context, list string, form url.Values, into any) (json.RawMessage, error) {
	body, err := s.PostForm(ctx, "api/v1/cardinality/"+list, form)
	if err != nil {
		return nil, err
	}
	var got Envelope
	err = json.Unmarshal(body, &got)
	if err == nil && got.Status != "success" {
		err = fmt.Errorf("%.200q", body)
	}
	if err == nil {
		err = json.Unmarshal(got.Data, into)
	}
	if err != nil {
		return nil, invalid(fmt.Errorf("%s: the response is not of Shale: %w", s.URL, err))
	}
	return got.Data, nil
}
