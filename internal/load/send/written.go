package send

import (
	"net/http"
	"strconv"

	"github.com/shaledb/shale/internal/load/wire"
)

// written is how much of a request a server has stored, by the headers of remote write 2.0.
type written struct{ samples, histograms, exemplars int }

// The headers. A missing or invalid one counts as 0.
const (
	WrittenSamples    = "X-Prometheus-Remote-Write-Samples-Written"
	WrittenHistograms = "X-Prometheus-Remote-Write-Histograms-Written"
	WrittenExemplars  = "X-Prometheus-Remote-Write-Exemplars-Written"
)

func writtenOf(h http.Header) written {
	number := func(name string) int {
		n, err := strconv.Atoi(h.Get(name))
		if err != nil {
			return 0
		}
		return n
	}
	return written{number(WrittenSamples), number(WrittenHistograms), number(WrittenExemplars)}
}

// nothing reports whether a server has stored nothing of a request that is not empty: in spite of the 2xx it
// did not understand the request. A Prometheus takes that for a failure, and drops the request.
func (w written) nothing(c *wire.Contents) bool {
	return w == written{} && c.Points()+c.Exemplars > 0
}

// all reports whether everything was stored.
func (w written) all(c *wire.Contents) bool {
	return w == written{c.Samples, c.Histograms, c.Exemplars}
}
