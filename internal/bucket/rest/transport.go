package rest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/roots"
)

// stall is how long a connection may make no progress. Requests of ships and merges have no deadline of their
// own, and a store that has died must not stop them.
const stall = time.Minute

// NewTransport returns connections to a store. They go through the proxy that the environment names
// (HTTPS_PROXY, NO_PROXY). caFile has the certificates of the authorities to trust; empty: those of the
// machine.
func NewTransport(caFile string) (http.RoundTripper, error) {
	// HTTP/2 would put all requests on one connection, which limits the rate of a store that has many machines.
	only1 := new(http.Protocols)
	only1.SetHTTP1(true)
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &conn{c}, nil
		},
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: stall,
		ExpectContinueTimeout: time.Second,
		MaxIdleConns:          512,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       stall / 2,
		// Objects come as they are stored.
		DisableCompression: true,
		Protocols:          only1,
	}
	if caFile == "" {
		return observer{t}, nil
	}
	var err error
	if t.TLSClientConfig.RootCAs, err = roots.File(caFile); err != nil {
		return nil, fmt.Errorf("bucket: %w: parameter ca-file: %w", model.ErrInvalid, err)
	}
	return observer{t}, nil
}

// conn fails when nothing moves for a while.
type conn struct{ net.Conn }

func (c *conn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(stall)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *conn) Write(p []byte) (int, error) {
	// Both deadlines: a read waits for the response while a long body is being sent.
	if err := c.SetDeadline(time.Now().Add(stall)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
