package send

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/tally"
)

// The metrics of the server that are read: received points, and the start of the process.
const (
	ReceivedMetric = "shale_graphite_received_points_total"
	startMetric    = "process_start_time_seconds"
)

// watch reads the server's counter at intervals and keeps the readings.
type watch struct {
	url    string
	server *client.Server
	state  *statefile.Writer
	trail  *statefile.Trail
	tally  *tally.Tally
	life   float64
}

func newWatch(url, token string, state *statefile.Writer, trail *statefile.Trail, tally *tally.Tally) *watch {
	w := &watch{
		url: url, state: state, trail: trail, tally: tally,
		// A connection of its own for each look: one kept open would outlive the server and spoil the next look.
		server: &client.Server{URL: url, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, Timeout: 5 * time.Second},
	}
	w.server.Bearer(token)
	return w
}

// run looks once a second.
func (w *watch) run(ctx context.Context) {
	for pace.Sleep(ctx, time.Second) == nil {
		w.look(ctx)
	}
}

// look takes one reading. Its time is the time of the response, which under load may take a while: a reading
// must not seem older than it is.
func (w *watch) look(ctx context.Context) statefile.Reading {
	if w.url == "" {
		return statefile.Reading{Away: true}
	}
	received, life, err := w.read(ctx)
	r := statefile.Reading{At: time.Now().UnixNano(), Received: received, Life: life}
	if ctx.Err() != nil {
		return r // the load is over, which says nothing about the server
	}
	if r.Away = err != nil; r.Away {
		w.tally.Complain(err.Error())
		w.state.Append(statefile.RecordAway, uint64(r.At), 0)
	} else {
		if r.Life != w.life {
			w.life = r.Life
			w.state.Append(statefile.RecordLife, uint64(r.At), math.Float64bits(r.Life))
		}
		w.state.Append(statefile.RecordReading, uint64(r.At), r.Received)
	}
	w.trail.Readings = append(w.trail.Readings, r)
	return r
}

// settle looks until the counter has reached the number of points sent, or has not moved for a few seconds:
// the last points are still in buffers when the load ends.
func (w *watch) settle(ctx context.Context, sent uint64) {
	const patience = 3 * time.Second
	last, since := uint64(0), time.Now()
	for w.url != "" && time.Since(since) < patience && ctx.Err() == nil {
		r := w.look(ctx)
		if !r.Away && r.Received != last {
			last, since = r.Received, time.Now()
		}
		if w.trail.Kept() >= sent || pace.Sleep(ctx, 200*time.Millisecond) != nil {
			return
		}
	}
}

func (w *watch) read(ctx context.Context) (received uint64, life float64, err error) {
	text, err := w.server.Get(ctx, "", nil)
	if err != nil {
		return 0, 0, err
	}
	return parseReading(text)
}

// parseReading sums the counter over its labels. It reads the text format only as far as it needs to.
func parseReading(text []byte) (received uint64, life float64, err error) {
	found, sum := false, 0.0
	for line := range strings.Lines(string(text)) {
		end := strings.IndexAny(line, "{ ")
		if end < 0 {
			continue
		}
		name, rest := line[:end], line[end:]
		if name != ReceivedMetric && name != startMetric {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, '}')+1:]), 64)
		if err != nil {
			return 0, 0, fmt.Errorf("metric %s: %w", name, err)
		}
		if name == startMetric {
			life = v
			continue
		}
		found = true
		sum += v
	}
	if !found {
		return 0, 0, fmt.Errorf("no metric %s", ReceivedMetric)
	}
	return uint64(sum), life, nil
}
