package verify

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/send"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/load/wire"
	"github.com/shaledb/shale/internal/model"
)

// TestRepack: a vmagent whose zstd is refused goes over to snappy, with what was refused and all that
// follows.
func TestRepack(t *testing.T) {
	for _, p := range []wire.Protocol{wire.V1, wire.V2} {
		for _, code := range []int{http.StatusBadRequest, http.StatusUnsupportedMediaType} {
			store := newPromStore(t)
			url := store.serve()
			store.change(func() {
				store.before = func(_ http.ResponseWriter, r *http.Request) int {
					if r.Header.Get("Content-Encoding") == "zstd" {
						return code
					}
					return 0
				}
			})
			l := promLoad(t, url, pace.Timing{Rounds: 3})
			l.Protocol, l.Compression, l.Emulate, l.Concurrency, l.Fleet.Metadata = p, wire.Zstd, send.VMAgent, 1, true
			states, report := runAndReload(t, l, &l.State)
			if report.Codes[fmt.Sprint(code)] != 1 || report.Acked != 3*72 || report.Dropped+report.Retries != 0 {
				t.Errorf("%v, %d: %+v", p, code, report)
			}
			if v := verify(t, url, states["kept"], func(v *SampleVerifier) { v.Server.Tenant, v.Metadata = "t1", true }); !v.OK() || v.Compared != 3*72 || v.Metadata != 4 {
				t.Errorf("%+v", v)
			}
		}
	}
}

// TestVMAgentNeverDropsForLimits: what 429 answered comes again, without being asked for.
func TestVMAgentNeverDropsForLimits(t *testing.T) {
	t.Parallel()
	store := newPromStore(t)
	url := store.serve()
	tries := 0
	store.change(func() {
		store.before = func(http.ResponseWriter, *http.Request) int {
			if tries++; tries == 1 {
				return http.StatusTooManyRequests
			}
			return 0
		}
	})
	l := promLoad(t, url, pace.Timing{Rounds: 1})
	l.Emulate, l.Batch = send.VMAgent, 100
	_, report, err := l.Run(t.Context())
	if err != nil || report.Retries != 1 || report.Acked != 72 || report.Seconds < 1 {
		t.Errorf("%+v, %v", report, err)
	}
	var attempts []string
	store.change(func() { attempts = []string{store.heads[0].Get("Retry-Attempt"), store.heads[1].Get("Retry-Attempt")} })
	if !slices.Equal(attempts, []string{"", "1"}) {
		t.Errorf("attempts %q", attempts)
	}
}

func TestNames(t *testing.T) {
	var (
		p wire.Protocol
		c wire.Compression
		e send.Emulation
		o Over
		g fleet.GraphiteProtocol
		s fleet.SpreadKind
		m values.ValueModel
	)
	for _, x := range []interface{ UnmarshalText([]byte) error }{&p, &c, &e, &o, &g, &s, &m} {
		if err := x.UnmarshalText([]byte("soup")); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%T: %v", x, err)
		}
	}
	for _, err := range []error{
		p.UnmarshalText([]byte("v2")), c.UnmarshalText([]byte("zstd")), e.UnmarshalText([]byte("vmagent")), o.UnmarshalText([]byte("remote-read")),
		g.UnmarshalText([]byte("pickle")), s.UnmarshalText([]byte("stagger")), m.UnmarshalText([]byte("float")),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if p.String()+c.String()+e.String()+g.String()+m.String() != "v2zstdvmagentpicklerandom" || o != OverRemoteRead || s != fleet.SpreadStagger {
		t.Error("names are not what they name")
	}
}
