package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/model"
)

// maxFileBytes bounds each file. A bundle of all public authorities has less than 300 KiB.
const maxFileBytes = 4 << 20

// Options build a Source.
type Options struct {
	// Cert and Key are PEM files: the certificate of the server, followed by those that lead to its authority,
	// and the private key.
	Cert, Key string
	// ClientCA is a PEM file with the authorities of clients. Empty: no client is asked for a certificate.
	ClientCA string
	// MinVersion is the least version of TLS, such as tls.VersionTLS12.
	MinVersion uint16
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// Demand says whether clients must have certificates. Any certificate that a client sends must be valid.
type Demand uint8

// The demands. Without authorities, both stand for no certificates.
const (
	Request Demand = iota // a client may have one
	Require               // the handshake fails without one
)

// Source has the configurations of TLS listeners. It is safe for concurrent use.
type Source struct {
	o                         Options
	read                      [3][]byte // the content of the files, as last looked at
	current                   atomic.Pointer[[Require + 1]*tls.Config]
	started, completed        prometheus.Counter
	fresh, expires, caExpires prometheus.Gauge
}

// New reads the files.
func New(o Options) (*Source, error) {
	f := promauto.With(o.Registerer)
	s := &Source{
		o:         o,
		started:   f.NewCounter(prometheus.CounterOpts{Name: "shale_tls_handshakes_started_total", Help: "TLS handshakes that clients have begun."}),
		completed: f.NewCounter(prometheus.CounterOpts{Name: "shale_tls_handshakes_completed_total", Help: "TLS handshakes that have succeeded."}),
		fresh:     f.NewGauge(prometheus.GaugeOpts{Name: "shale_tls_reload_success", Help: "1 if the TLS files were last read without an error; while it is 0, the previous certificates are used."}),
		expires:   f.NewGauge(prometheus.GaugeOpts{Name: "shale_tls_certificate_expiry_seconds", Help: "Unix time at which the certificate of the server ends."}),
		caExpires: f.NewGauge(prometheus.GaugeOpts{Name: "shale_tls_client_ca_expiry_seconds", Help: "Unix time at which the first of the authorities of clients ends; 0 if there are none."}),
	}
	files, err := s.files()
	if err != nil {
		return nil, err
	}
	return s, s.use(files)
}

// files reads the files.
func (s *Source) files() (text [3][]byte, err error) {
	for i, f := range [...][2]string{{"tls.cert-file", s.o.Cert}, {"tls.key-file", s.o.Key}, {"tls.client-ca-file", s.o.ClientCA}} {
		if f[1] == "" {
			continue
		}
		if text[i], err = readFile(f[1]); err != nil {
			return text, fmt.Errorf("%w: %s: %w", model.ErrInvalid, f[0], err)
		}
	}
	return text, nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(text) > maxFileBytes {
		err = fmt.Errorf("%s: expected at most %d bytes", name, maxFileBytes)
	}
	return text, err
}

// use makes the configurations from the contents of the files. After an error they are those of before.
func (s *Source) use(files [3][]byte) (err error) {
	s.read = files
	defer func() {
		if err != nil {
			s.fresh.Set(0)
			err = fmt.Errorf("%w: %w", model.ErrInvalid, err)
		}
	}()
	pair, err := tls.X509KeyPair(files[0], files[1])
	if err != nil {
		return fmt.Errorf("tls.cert-file %s and tls.key-file %s: %w", s.o.Cert, s.o.Key, err)
	}
	c := &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: s.o.MinVersion,
		VerifyConnection: func(tls.ConnectionState) error { s.completed.Inc(); return nil },
	}
	required, caExpires := c.Clone(), time.Unix(0, 0)
	if s.o.ClientCA != "" {
		if c.ClientCAs, caExpires, err = authorities(files[2]); err != nil {
			return fmt.Errorf("tls.client-ca-file %s: %w", s.o.ClientCA, err)
		}
		c.ClientAuth = tls.VerifyClientCertIfGiven
		// A ticket would let a client in again whose authority has been removed since.
		c.SessionTicketsDisabled = true
		required = c.Clone()
		required.ClientAuth = tls.RequireAndVerifyClientCert
	}
	s.current.Store(&[...]*tls.Config{Request: c, Require: required})
	s.fresh.Set(1)
	s.expires.Set(float64(pair.Leaf.NotAfter.Unix()))
	s.caExpires.Set(float64(caExpires.Unix()))
	if time.Now().After(pair.Leaf.NotAfter) {
		s.o.Logger.Warn("the certificate of the server has ended", "file", s.o.Cert, "at", pair.Leaf.NotAfter)
	}
	return nil
}

// authorities reads certificates, and returns when the first of them ends.
func authorities(text []byte) (*x509.CertPool, time.Time, error) {
	pool, first := x509.NewCertPool(), time.Time{}
	all, err := parse(text)
	if err != nil {
		return nil, first, err
	}
	for _, c := range all {
		pool.AddCert(c)
		if first.IsZero() || c.NotAfter.Before(first) {
			first = c.NotAfter
		}
	}
	return pool, first, nil
}

// Config returns the configuration of a listener. It follows the files. Without protocols, the listener does
// not speak HTTP.
func (s *Source) Config(d Demand, protocols ...string) *tls.Config {
	return &tls.Config{
		// A client may offer protocols that the listener does not know.
		MinVersion: s.o.MinVersion,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			s.started.Inc()
			c := s.current.Load()[d]
			if len(protocols) > 0 {
				c = c.Clone()
				c.NextProtos = protocols
			}
			return c, nil
		},
	}
}

// Watch reads the files again each interval, and at once when hurry says so. It returns when the context
// ends. Contents are compared, since tools that renew certificates may keep times and sizes.
func (s *Source) Watch(ctx context.Context, interval time.Duration, hurry <-chan os.Signal) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	missing := false
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-hurry:
			asked = true
		case <-tick.C:
		}
		files, err := s.files()
		if err != nil {
			s.fresh.Set(0)
			if !missing || asked {
				s.o.Logger.Error("cannot read the TLS files; keeping the previous certificates", "err", err)
			}
			missing = true
			continue
		}
		same := !missing && bytes.Equal(files[0], s.read[0]) && bytes.Equal(files[1], s.read[1]) && bytes.Equal(files[2], s.read[2])
		missing = false
		if same && !asked {
			continue
		}
		if err := s.use(files); err != nil {
			s.o.Logger.Error("cannot use the TLS files together; keeping the previous certificates", "err", err)
			continue
		}
		s.o.Logger.Info("read the TLS files", "cert", s.o.Cert, "client_ca", s.o.ClientCA)
	}
}
