package client

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
)

// Written counts what a server has stored of a remote write request.
type Written struct{ Samples, Histograms, Exemplars int }

// RemoteWrite sends a request of remote write 2.0, a message in a snappy block, and returns what the server
// says that it has stored. A response that does not say so is an error of class [model.ErrInvalid]: the
// server took the body for one of version 1.
func (s *Server) RemoteWrite(ctx context.Context, body []byte) (w Written, err error) {
	_, header, err := s.request(ctx, http.MethodPost, "api/v1/write", nil, http.Header{
		"Content-Type": {"application/x-protobuf;proto=io.prometheus.write.v2.Request"}, "Content-Encoding": {"snappy"},
		"X-Prometheus-Remote-Write-Version": {"2.0.0"},
	}, body)
	if err != nil {
		return w, err
	}
	for name, n := range map[string]*int{"Samples": &w.Samples, "Histograms": &w.Histograms, "Exemplars": &w.Exemplars} {
		name = "X-Prometheus-Remote-Write-" + name + "-Written"
		if *n, err = strconv.Atoi(header.Get(name)); err != nil {
			return w, invalid(fmt.Errorf("%s: the response has no %s, so the server does not speak remote write 2.0", s.URL, name))
		}
	}
	return w, nil
}
