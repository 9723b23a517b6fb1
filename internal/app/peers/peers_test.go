package peers

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestToken: a token that is replaced is used within seconds, and one that is gone for a while stays.
func TestToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("\n")
	if _, err := OpenToken(file); err == nil || !strings.Contains(err.Error(), "ingesters-token-file") {
		t.Errorf("an empty file: %v", err)
	}
	write("shale_one\n")
	synctest.Test(t, func(t *testing.T) {
		token, err := OpenToken(file)
		if err != nil {
			t.Fatal(err)
		}
		sends := func(want string) {
			t.Helper()
			r := &http.Request{Header: http.Header{}}
			token.Add(r)
			if got := r.Header.Get("Authorization"); got != "Bearer "+want {
				t.Errorf("got %q, expected the token %q", got, want)
			}
		}
		sends("shale_one")
		write("shale_two")
		sends("shale_one")
		time.Sleep(readEvery + 1)
		sends("shale_two")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(readEvery + 1)
		sends("shale_two")
	})
}

func TestClientRefusesFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, file + ".missing"} {
		if _, err := Client(name); err == nil || !strings.Contains(err.Error(), "ingesters-tls-ca-file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
