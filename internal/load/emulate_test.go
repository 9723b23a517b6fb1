package load

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
)

func TestFates(t *testing.T) {
	names := map[fate]string{stored: "stored", again: "again", repack: "repack", refused: "refused"}
	for _, c := range []struct {
		emulate  Emulation
		zip      Compression
		retry429 bool
		want     string // for 200, 204, 302, 400, 404, 409, 413, 415, 429, 500, 503
	}{
		{Prometheus, Snappy, false, "stored stored refused refused refused refused refused refused refused again again"},
		{Prometheus, Snappy, true, "stored stored refused refused refused refused refused refused again again again"},
		{Prometheus, Zstd, false, "stored stored refused refused refused refused refused refused refused again again"},
		{VMAgent, Snappy, false, "stored stored again refused again refused again refused again again again"},
		{VMAgent, Zstd, false, "stored stored again repack again refused again repack again again again"},
	} {
		got := ""
		for _, code := range []int{200, 204, 302, 400, 404, 409, 413, 415, 429, 500, 503} {
			got += " " + names[c.emulate.fate(code, c.zip, c.retry429)]
		}
		if got[1:] != c.want {
			t.Errorf("%v %v %v:\n got %s\nwant %s", c.emulate, c.zip, c.retry429, got[1:], c.want)
		}
	}
}

func TestBackoff(t *testing.T) {
	const s = time.Second
	ask := []time.Duration{0, 0, 10 * s, 0, 0, 0, 0, 0, 0, 0}
	for e, want := range map[Emulation][]time.Duration{
		Prometheus: {30e6, 60e6, 10 * s, 5 * s, 5 * s, 5 * s, 5 * s, 5 * s, 5 * s, 5 * s},
		VMAgent:    {s, 2 * s, 10 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s, 60 * s},
	} {
		b := backoff{Emulation: e, seed: 5}
		for range 2 { // each body begins anew
			b.begin()
			for i, asked := range ask {
				if got := b.wait(asked); got < want[i] || got > want[i]+want[i]/10 {
					t.Errorf("%v, attempt %d: %v, want %v and at most a tenth more", e, i, got, want[i])
				}
			}
		}
	}
	x, y := backoff{seed: 1}, backoff{seed: 2}
	x.begin()
	y.begin()
	if x.wait(0) == y.wait(0) {
		t.Error("two shards wait equally long")
	}
}

// TestRepack: a vmagent whose zstd is refused goes over to snappy, with what was refused and all that follows.
func TestRepack(t *testing.T) {
	for _, p := range []Protocol{V1, V2} {
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
			l := promLoad(t, url, Timing{Rounds: 3})
			l.Protocol, l.Compression, l.Emulate, l.Concurrency, l.Fleet.Metadata = p, Zstd, VMAgent, 1, true
			states, report := runAndReload(t, l)
			if report.Codes[fmt.Sprint(code)] != 1 || report.Acked != 3*72 || report.Dropped+report.Retries != 0 {
				t.Errorf("%v, %d: %+v", p, code, report)
			}
			if v := verify(t, url, states["kept"], func(v *Verifier) { v.Tenant, v.Metadata = "t1", true }); !v.OK() || v.Compared != 3*72 || v.Metadata != 4 {
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
	l := promLoad(t, url, Timing{Rounds: 1})
	l.Emulate, l.Batch = VMAgent, 100
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
		p Protocol
		c Compression
		e Emulation
		o Over
		g GraphiteProtocol
		s SpreadKind
		m ValueModel
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
	if p.String()+c.String()+e.String()+g.String()+m.String() != "v2zstdvmagentpicklerandom" || o != OverRemoteRead || s != SpreadStagger {
		t.Error("names are not what they name")
	}
}
