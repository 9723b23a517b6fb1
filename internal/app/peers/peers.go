package peers

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/roots"
)

// Client returns a client of processes that speak HTTPS. caFile has their authorities in PEM; empty: those of
// the system.
func Client(caFile string) (*http.Client, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		var err error
		if c.RootCAs, err = roots.File(caFile); err != nil {
			return nil, fmt.Errorf("%w: ingesters-tls-ca-file: %w", model.ErrInvalid, err)
		}
	}
	return &http.Client{Transport: &http.Transport{
		// The servers speak HTTP/1.1 only.
		TLSClientConfig: c, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second, DisableCompression: true,
	}}, nil
}

// Token is a token in the first line of a file, which is read again from time to time. It is safe for
// concurrent use.
type Token struct {
	file string

	mu   sync.Mutex
	text string
	read time.Time
}

// readEvery is how old a token may be.
const readEvery = 10 * time.Second

// OpenToken reads a token.
func OpenToken(file string) (*Token, error) {
	t := &Token{file: file}
	text, err := t.load()
	if err != nil {
		return nil, fmt.Errorf("%w: ingesters-token-file: %w", model.ErrInvalid, err)
	}
	t.text, t.read = text, time.Now()
	return t, nil
}

func (t *Token) load() (string, error) {
	text, err := os.ReadFile(t.file)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return "", fmt.Errorf("%s has no token in its first line", t.file)
	}
	return line, nil
}

// Add adds the token to a request. While the file cannot be read, it is the token of before.
func (t *Token) Add(r *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.read) > readEvery {
		t.read = time.Now()
		if text, err := t.load(); err == nil {
			t.text = text
		}
	}
	r.Header.Set("Authorization", "Bearer "+t.text)
}
