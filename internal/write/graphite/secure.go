package graphite

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Doors are the TCP listeners that speak TLS. Their clients are known by certificates.
type Doors struct {
	// Listen and PickleListen are the addresses for plaintext and pickles. Empty: off.
	Listen, PickleListen string
	// TLS must verify the certificates of clients.
	TLS *tls.Config
	// Tenant returns the tenant of a client, empty for the default one, or why it may not write. It is called
	// at the begin of a connection and before each part of it is taken, so that what is revoked ends.
	Tenant func(*tls.ConnectionState) (string, error)
}

// handshakeTimeout bounds how long a handshake may take, with the header of a proxy before it. Meanwhile the
// connection counts as one of a stranger.
const handshakeTimeout = 10 * time.Second

// sender is the client of a connection.
type sender struct {
	l      *Listener
	nc     net.Conn
	state  *tls.ConnectionState // nil without TLS: anyone
	tenant string               // whose points are received
}

// identify makes the handshake, if the connection has one, and returns the sender. It returns nil if the
// connection must be closed.
func (l *Listener) identify(nc net.Conn) *sender {
	s := &sender{l: l, nc: nc, tenant: model.DefaultTenant}
	secure, ok := nc.(*tls.Conn)
	if !ok {
		return s
	}
	ctx, cancel := context.WithTimeout(l.ctx, handshakeTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		if peerOf(nc).gaveWay.Load() {
			return nil // this has been counted and logged
		}
		l.metrics.unidentified.Inc()
		l.log.failure("TLS handshake failed", "peer", direct(nc), "error", err)
		return nil
	}
	state := secure.ConnectionState()
	s.state = &state
	tenant, err := s.tenantNow()
	if err != nil {
		return nil
	}
	s.tenant = tenant
	return s
}

// tenantNow returns the tenant that the client has now, and logs why it has none.
func (s *sender) tenantNow() (string, error) {
	tenant, err := s.l.o.Doors.Tenant(s.state)
	if err != nil {
		s.l.metrics.unidentified.Inc()
		s.l.log.failure("connection closed: its client may not write", "peer", s.nc.RemoteAddr().String(), "error", err)
	}
	return cmp.Or(tenant, model.DefaultTenant), err
}

// errMoved is the error of a connection that began for another tenant. The client connects again.
var errMoved = errors.New("the client now has another tenant")

// check returns an error if the client may no longer write for the tenant of the connection.
func (s *sender) check() error {
	if s.state == nil {
		return nil
	}
	tenant, err := s.tenantNow()
	if err == nil && tenant != s.tenant {
		err = errMoved
	}
	return err
}
