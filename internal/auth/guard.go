package auth

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/auth/issuer"
	"github.com/shaledb/shale/internal/filewatch"
	"github.com/shaledb/shale/internal/model"
)

// Options build a Guard.
type Options struct {
	// File has the tokens.
	File       string
	Now        func() time.Time // nil: the clock of the machine
	Registerer prometheus.Registerer
	Logger     *slog.Logger
	// Audit gets the deletions and the actions of administration; nil: Logger.
	Audit *slog.Logger
}

// Guard lets requests through that have a right. It is safe for concurrent use. Nil lets every request
// through.
type Guard struct {
	o       Options
	keys    atomic.Pointer[Keys]
	file    *filewatch.Watcher
	refused *prometheus.CounterVec
	fresh   prometheus.Gauge
	issuer  *issuer.Metrics
}

// New returns a guard with the tokens of the file.
func New(o Options) (*Guard, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Audit == nil {
		o.Audit = o.Logger
	}
	f := promauto.With(o.Registerer)
	g := &Guard{o: o, file: filewatch.New(o.File), issuer: issuer.NewMetrics(o.Registerer),
		refused: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_auth_refused_total", Help: "Requests that were refused, by reason: missing (no token or certificate), invalid, expired, right (the client lacks it), tenant (the client may not use it), unreachable (the issuer of the JWT does not respond).",
		}, []string{"reason"}),
		fresh: f.NewGauge(prometheus.GaugeOpts{Name: "shale_auth_reload_success", Help: "1 if the file of tokens was last read without an error; while it is 0, the previous tokens stay valid."}),
	}
	for _, reason := range []string{missing, invalid, expired, right, tenant, unreachable} {
		g.refused.WithLabelValues(reason)
	}
	return g, g.load()
}

// load reads the file. After an error the tokens are those of before.
func (g *Guard) load() (err error) {
	defer func() {
		g.fresh.Set(0)
		if err == nil {
			g.fresh.Set(1)
		} else {
			err = fmt.Errorf("%w: auth.tokens: %s: %w", model.ErrInvalid, g.o.File, err)
		}
	}()
	f, err := os.Open(g.o.File)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return err
	}
	k, err := ParseKeys(text)
	if err != nil {
		return err
	}
	if k.oidc != nil {
		var before *identities
		if old := g.keys.Load(); old != nil {
			before = old.oidc
		}
		if err := k.oidc.open(before, g.o.Now, g.issuer); err != nil {
			return fmt.Errorf("oidc: %w", err)
		}
	}
	g.keys.Store(k)
	return nil
}

// Watch reads the file again when it has changed, looking each interval, and at once when hurry says so. It
// returns when the context ends.
func (g *Guard) Watch(ctx context.Context, interval time.Duration, hurry <-chan os.Signal) {
	var fetching sync.WaitGroup
	fetching.Go(func() { g.fetchKeys(ctx, interval) })
	defer fetching.Wait()
	g.file.Run(ctx, interval, hurry, func() {
		if err := g.load(); err != nil {
			g.o.Logger.Error("cannot read the tokens; keeping the previous ones", "err", err)
			return
		}
		g.o.Logger.Info("read the tokens", "file", g.o.File, "tokens", len(g.keys.Load().bySum), "clients", len(g.keys.Load().byName))
	})
}

// fetchKeys fetches the keys of the issuer when they are due, until the context ends.
func (g *Guard) fetchKeys(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if d := g.keys.Load().oidc; d != nil {
			if err := d.Refresh(ctx); err != nil && ctx.Err() == nil {
				g.o.Logger.Warn("cannot fetch the keys of the issuer; keeping the previous ones for up to a day", "issuer", d.URL, "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Protect returns a handler that lets requests through that have a right. Those for deletions and for the
// administration go to the log, refused or not.
func (g *Guard) Protect(needs Right, next http.Handler) http.Handler {
	if g == nil || needs == Open {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A browser asks without a token whether it may send one. The response has no data.
		if r.Method == http.MethodOptions && needs == Read {
			next.ServeHTTP(w, r)
			return
		}
		grant, denied := g.keys.Load().admit(r.Context(), r.Header, r.TLS, needs, g.o.Now())
		audited := needs == Delete || needs == Admin && r.URL.Path != "/metrics"
		if denied == nil && audited {
			seen := &statusWriter{ResponseWriter: w}
			defer g.audit(grant, r, seen)
			w = seen
		}
		if denied == nil {
			// The token has done its work, and no handler can log it.
			r.Header.Del("Authorization")
			next.ServeHTTP(w, r)
			return
		}
		g.count(denied)
		if audited {
			g.audit(grant, r, &statusWriter{status: denied.Status})
		}
		if denied.Status == http.StatusUnauthorized {
			w.Header()["Www-Authenticate"] = []string{`Bearer realm="shale"`, `Basic realm="shale", charset="UTF-8"`}
		}
		if denied.Status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "10")
		}
		http.Error(w, denied.Error(), denied.Status)
	})
}

// maxAudited bounds the parameters in the log.
const maxAudited = 2 << 10

// audit logs a request with the name of its client, and what the client has shown.
func (g *Guard) audit(grant *Grant, r *http.Request, seen *statusWriter) {
	who, by := "", ""
	if grant != nil {
		who, by = grant.Name, grant.by
	}
	params := r.URL.RawQuery
	if r.Form != nil {
		params = r.Form.Encode()
	}
	status := seen.status
	if status == 0 {
		status = http.StatusOK
	}
	g.o.Audit.Info("audit", "client", who, "by", by, "from", r.RemoteAddr, "method", r.Method, "path", r.URL.Path,
		"tenant", r.Header.Get(model.TenantHeader), "params", params[:min(len(params), maxAudited)], "status", status)
}

// statusWriter notes the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the status.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the handler bound the time of the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
