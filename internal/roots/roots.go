package roots

import (
	"crypto/x509"
	"fmt"
	"os"
)

// File returns the certificates of a PEM file. An error names the file.
func File(name string) (*x509.CertPool, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", name)
	}
	return pool, nil
}
