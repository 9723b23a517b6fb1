package client

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
)

// PushLines sends lines over Loki's push endpoint as JSON. They need no Stream.
func (s *Server) PushLines(ctx context.Context, lines []Line) error {
	type stream struct {
		Stream map[string]string `json:"stream"`
		Values [][2]string       `json:"values"`
	}
	var push struct {
		Streams []*stream `json:"streams"`
	}
	bySelector := map[string]*stream{}
	for _, l := range lines {
		name := selector(l.Labels)
		if bySelector[name] == nil {
			bySelector[name] = &stream{Stream: l.Labels}
			push.Streams = append(push.Streams, bySelector[name])
		}
		bySelector[name].Values = append(bySelector[name].Values, [2]string{strconv.FormatInt(l.At, 10), string(l.Text)})
	}
	body, err := json.Marshal(push)
	if err != nil {
		return invalid(err)
	}
	_, err = s.Post(ctx, "loki/api/v1/push", http.Header{"Content-Type": {"application/json"}}, body)
	return err
}
