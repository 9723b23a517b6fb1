package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/admin"
	"github.com/shaledb/shale/internal/auth"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
)

// role is what a process does that is one of several. It serves only its own endpoints.
type role interface {
	// ready returns why the role cannot do its work at present, or nil. It depends on no other process of
	// Shale, and must not block.
	ready() error
	// mount adds the endpoints of the role.
	mount(m api.Mux) error
	// quiesce closes listeners besides HTTP, and ends responses that would not end by themselves. Running
	// requests are waited for afterwards.
	quiesce() error
	// close ends the role. No request runs.
	close() error
}

// builder opens a role.
type builder struct {
	open func(context.Context, *node) (role, error)
	// serves are the rights of the endpoints that the role has.
	serves []auth.Right
}

// builders returns the roles that there are. Each has a file of its own: role_*.go.
func builders() map[string]builder {
	return map[string]builder{
		config.RoleGateway: {openGateway, []auth.Right{auth.Write}},
		config.RoleQuery:   {openQuery, []auth.Right{auth.Read, auth.Delete}},
		config.RoleIngest:  {openIngest, []auth.Right{auth.Peer}},
		config.RoleCompact: {openCompact, nil},
	}
}

// runRoles opens the roles of a process and serves until ctx ends. Then it stops gracefully.
func runRoles(ctx context.Context, n *node, ready *readiness) (err error) {
	began := time.Now()
	table := builders()
	for _, name := range n.config.RoleList() {
		if table[name].open == nil {
			return fmt.Errorf("%w: role: this version has no role %s yet", model.ErrInvalid, name)
		}
	}
	if err := n.start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	var open []role
	defer func() {
		for i := len(open) - 1; i >= 0; i-- {
			err = errors.Join(err, open[i].close())
		}
	}()
	mux := newGuardedMux(n.servers.guard)
	n.servers.http.admin.Routes(mux)
	for _, name := range n.config.RoleList() {
		r, err := table[name].open(ctx, n)
		if err != nil {
			return fmt.Errorf("role %s: %w", name, err)
		}
		open = append(open, r)
		if err := r.mount(mux); err != nil {
			return fmt.Errorf("role %s: %w", name, err)
		}
	}
	if err := mux.unknown(); err != nil {
		return err
	}
	notHere(mux)
	n.servers.mounted = mux.mounted
	n.servers.http.mux.Store(mux.ServeMux)
	asked := func() error {
		for _, r := range open {
			if err := r.ready(); err != nil {
				return err
			}
		}
		return nil
	}
	ready.roles.Store(&asked)
	ready.set(nil)
	n.log.Info("ready", append([]any{"after", time.Since(began).Round(time.Millisecond), "role", n.config.Role, "http", n.servers.http.Addr()}, n.servers.graphiteAddrs()...)...)

	select {
	case <-ctx.Done():
	case err = <-n.servers.failed:
	}
	ready.set(errStopping)
	n.log.Info("stopping")
	for _, r := range open {
		err = errors.Join(err, r.quiesce())
	}
	return errors.Join(err, n.servers.drain())
}

// notHere answers for endpoints that only other roles have. To writes it answers 503, after which all
// senders send again: OpenTelemetry drops after 501.
func notHere(m *guardedMux) {
	has := map[string]bool{}
	for _, row := range m.mounted {
		has[row] = true
	}
	names := map[auth.Right][]string{auth.Write: {config.RoleGateway}, auth.Read: {config.RoleQuery}, auth.Delete: {config.RoleQuery}}
	for row, right := range m.table {
		roles, known := names[right]
		if !known || has[row] {
			continue
		}
		text := "no role carries out this request yet; see docs/scale-out.md"
		for _, r := range roles {
			text = fmt.Sprintf("this process does not serve %s; if any role does, it is %s", row, r)
		}
		m.Handle(row, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if right == auth.Write {
				w.Header().Set("Retry-After", "10")
				http.Error(w, text, http.StatusServiceUnavailable)
				return
			}
			http.Error(w, text, http.StatusNotImplemented)
		}))
	}
}

// endpointsOf returns the lines of the page at / for the roles of a process.
func endpointsOf(c *config.Config) (own []admin.Listed) {
	if c.Has(config.RoleAll) {
		return endpoints()
	}
	served := map[auth.Right]bool{}
	table := builders()
	for _, name := range c.RoleList() {
		for _, right := range table[name].serves {
			served[right] = true
		}
	}
	rights := scopes()
	for _, e := range endpoints() {
		if right, ok := rights[strings.TrimSuffix(e.Path, "/")]; ok && served[right] {
			own = append(own, e)
		}
	}
	return own
}

var errStopping = errors.New("stopping")

// starting says what a process does before it is ready.
func starting(c *config.Config) string {
	if c.Has(config.RoleAll) {
		return "starting: the journal is being replayed"
	}
	return "starting: the roles are being opened"
}

// readiness says why a process is not ready. It is safe for concurrent use.
type readiness struct {
	why   atomic.Pointer[error]
	roles atomic.Pointer[func() error] // asked once the process has started; nil: nothing is
}

// set says why the process is not ready; nil: it is, as far as it depends on starts and stops.
func (r *readiness) set(why error) {
	if why == nil {
		r.why.Store(nil)
		return
	}
	r.why.Store(&why)
}

// get returns why the process is not ready, or nil.
func (r *readiness) get() error {
	if why := r.why.Load(); why != nil {
		return *why
	}
	if roles := r.roles.Load(); roles != nil {
		return (*roles)()
	}
	return nil
}
