package verify

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/statefile"
)

// A load without an acknowledgement is a failure, although nothing is missing.
func TestNothingAcknowledged(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	}))
	defer srv.Close()
	shape := fleet.Fleet{Targets: 2, Metrics: 1, Series: 1, Name: "m"}
	agents := fleet.Agents{Prefix: "a", Agents: 1, Metrics: 1, Connections: 1}
	line := pace.Timeline{Start: 1e18, Step: 1e9}
	for name, state := range map[string]*statefile.State{
		"remote write": statefile.New(statefile.Header{Version: statefile.StateVersion, Timeline: line, RemoteWrite: &shape, Batch: 1}),
		"graphite":     statefile.New(statefile.Header{Version: statefile.StateVersion, Timeline: line, Graphite: &agents}),
	} {
		state.Ended = true
		verify := func(sentBefore uint64) *Samples {
			v := SampleVerifier{Server: &client.Server{URL: srv.URL, HTTP: srv.Client()}, State: state, Series: 1, Chunk: 1, Counts: true, Concurrency: 1, SentBefore: sentBefore}
			out, err := v.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		out := verify(0)
		var text strings.Builder
		out.WriteText(&text)
		if out.OK() || !out.Unproven || !strings.Contains(text.String(), "verification FAILED") || !strings.Contains(text.String(), "nothing was acknowledged") {
			t.Errorf("%s: %+v\n%s", name, out, text.String())
		}
		// As soon as anything must be there, its absence is what is wrong.
		if state.Acks != nil {
			state.Acks.Ack(0, 1)
		}
		if out := verify(1); out.Unproven || out.OK() {
			t.Errorf("%s: %+v", name, out)
		}
	}
}
