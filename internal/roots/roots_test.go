package roots_test

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/auth/certstest"
	"github.com/shaledb/shale/internal/roots"
)

func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ca.pem")
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := roots.File(name); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
	write([]byte("notes"))
	if _, err := roots.File(name); err == nil || !strings.Contains(err.Error(), name+" has no certificate in PEM") {
		t.Errorf("a file of notes: %v", err)
	}
	one, two := certstest.New(t, "one").Cert, certstest.New(t, "two").Cert
	write(append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one.Raw}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: two.Raw})...))
	pool, err := roots.File(name)
	if err != nil {
		t.Fatal(err)
	}
	want := x509.NewCertPool()
	want.AddCert(one)
	want.AddCert(two)
	if !pool.Equal(want) {
		t.Error("the pool does not hold the two authorities of the file")
	}
}
