package client

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/shaledb/shale/internal/roots"
)

// Access is how a server lets a command in. The tags make the fields flags.
type Access struct {
	Token string `name:"token-file" env:"SHALE_TOKEN_FILE" placeholder:"FILE" help:"File with the token that the server requires."`
	CA    string `name:"ca-file" placeholder:"FILE" help:"PEM file with the authorities that may have signed the certificate of the server. Default: those of this machine."`
	Cert  string `name:"cert-file" placeholder:"FILE" help:"PEM file with the certificate by which the server knows this client."`
	Key   string `name:"key-file" placeholder:"FILE" help:"PEM file with the private key of --cert-file."`
}

// Allow makes all requests with what lets them in. An error names the flag.
func (s *Server) Allow(a *Access) error {
	if err := s.authorize(a.Token); err != nil {
		return fmt.Errorf("--token-file: %w", err)
	}
	if a.CA == "" && a.Cert == "" && a.Key == "" {
		return nil
	}
	c := &tls.Config{}
	if a.CA != "" {
		var err error
		if c.RootCAs, err = roots.File(a.CA); err != nil {
			return fmt.Errorf("--ca-file: %w", invalid(err))
		}
	}
	if (a.Cert == "") != (a.Key == "") {
		return invalid(errors.New("--cert-file and --key-file must be given together"))
	}
	if a.Cert != "" {
		pair, err := tls.LoadX509KeyPair(a.Cert, a.Key)
		if err != nil {
			return fmt.Errorf("--cert-file: %w", invalid(err))
		}
		c.Certificates = []tls.Certificate{pair}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = c
	s.HTTP = &http.Client{Transport: transport}
	return nil
}

// authorize sends the token in a file with every request. An empty name sends none.
func (s *Server) authorize(file string) error {
	if file == "" {
		return nil
	}
	token, err := ReadToken(file)
	if err != nil {
		return err
	}
	s.Bearer(token)
	return nil
}

// ReadToken returns the token in a file.
func ReadToken(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", invalid(err)
	}
	token := string(bytes.TrimSpace(text))
	if token == "" || strings.ContainsAny(token, " \r\n") {
		return "", invalid(fmt.Errorf("expected one token in %s", file))
	}
	return token, nil
}

// Bearer sends a token with every request. An empty one is not sent.
func (s *Server) Bearer(token string) {
	if token == "" {
		return
	}
	if s.Header == nil {
		s.Header = http.Header{}
	}
	s.Header.Set("Authorization", "Bearer "+token)
}
