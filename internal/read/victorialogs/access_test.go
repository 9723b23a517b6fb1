package victorialogs

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/breaker"
)

// TestCredentials: a file is read for each request. Without it nothing is asked, the error names it, and the
// breaker stays closed.
func TestCredentials(t *testing.T) {
	var got atomic.Value
	got.Store("")
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("Authorization"))
		answering(statRow, rowOne+rowTwo)(rw, r)
	})
	file := filepath.Join(t.TempDir(), "authorization")
	w.client.authorization = file
	fails := func(why string) {
		t.Helper()
		for range 2 * breaker.Failures {
			_, err := w.lines(context.Background(), request())
			if !errors.Is(err, model.ErrTransient) || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), why) {
				t.Fatalf("%v, want %s and %s", err, file, why)
			}
		}
	}
	fails("no such file")
	for text, why := range map[string]string{" \n": "empty", "a\nb": "one line", "Bearer \x00": "one line", strings.Repeat("x", 16<<10+1): "more than"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		fails(why)
	}
	if n := w.asked.Load(); n != 0 || w.client.breaker.Open() {
		t.Errorf("%d requests; the breaker is open: %v", n, w.client.breaker.Open())
	}
	for _, text := range []string{"Bearer one", "Bearer two\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := w.lines(context.Background(), request()); err != nil || got.Load() != strings.TrimSpace(text) {
			t.Errorf("%q is sent as %q, %v", text, got.Load(), err)
		}
	}
}

// TestFilters: the filter of a tenant is in all of its requests, and in those of no other tenant.
func TestFilters(t *testing.T) {
	var got atomic.Value
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		got.Store(r.FormValue("extra_filters"))
		answering(statRow, rowOne+rowTwo)(rw, r)
	})
	if err := w.settings.Accounts.UnmarshalText([]byte("a=1,b=1")); err != nil {
		t.Fatal(err)
	}
	if err := w.settings.Filters.UnmarshalText([]byte(`a={env="x;y"}`)); err != nil {
		t.Fatal(err)
	}
	for tenant, want := range map[string]string{"a": `{env="x;y"}`, "b": ""} {
		req := request()
		req.Tenant = tenant
		if _, err := w.lines(context.Background(), req); err != nil || got.Load() != want {
			t.Errorf("tenant %s: %v, %v", tenant, got.Load(), err)
		}
	}
}
