package load

import (
	"net/http"
	"strconv"
)

// written is what a server says in the headers of remote write 2.0 that it has stored of a request.
type written struct{ samples, histograms, exemplars int }

// The headers. One that is missing, or is no number, counts as 0.
const (
	writtenSamples    = "X-Prometheus-Remote-Write-Samples-Written"
	writtenHistograms = "X-Prometheus-Remote-Write-Histograms-Written"
	writtenExemplars  = "X-Prometheus-Remote-Write-Exemplars-Written"
)

func writtenOf(h http.Header) written {
	number := func(name string) int {
		n, err := strconv.Atoi(h.Get(name))
		if err != nil {
			return 0
		}
		return n
	}
	return written{number(writtenSamples), number(writtenHistograms), number(writtenExemplars)}
}

// nothing reports that a server has stored nothing of a request that holds something: although it answered 2xx, it
// did not understand the request. A Prometheus takes that for a failure, and drops the request.
func (w written) nothing(c *contents) bool {
	return w == written{} && c.points()+c.exemplars > 0
}

// all reports whether everything was stored.
func (w written) all(c *contents) bool {
	return w == written{c.samples, c.histograms, c.exemplars}
}
