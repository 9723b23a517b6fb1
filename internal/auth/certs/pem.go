package certs

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// parse returns the certificates of a PEM file. Unlike [x509.CertPool.AppendCertsFromPEM], it skips none that
// it cannot read.
func parse(text []byte) (all []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("expected certificates, found %.40q", block.Type)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(all)+1, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, errors.New("expected certificates in PEM, found none")
	}
	return all, nil
}
