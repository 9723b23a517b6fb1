package rest

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

func TestErrorClasses(t *testing.T) {
	s := Store{Bucket: "s3://name", Credentials: "a file"}
	for _, test := range []struct {
		err  error
		want error
		text string
	}{
		{&Refusal{Status: 404, Code: "NoSuchKey"}, bucket.ErrNotFound, "bucket s3://name: get a/b: object not found"},
		{&Refusal{Status: 404, NoBucket: true}, bucket.ErrDenied, "the bucket does not exist"},
		{&Refusal{Status: 401}, bucket.ErrDenied, "the credentials are those of a file"},
		{&Refusal{Status: 403, Code: "AccessDenied", Message: "no"}, bucket.ErrDenied, "status 403 AccessDenied: no"},
		{&Refusal{Status: 400}, model.ErrInvalid, "status 400"},
		{&Refusal{Status: 400, Again: true}, model.ErrTransient, "status 400"},
		{&Refusal{Status: 408}, model.ErrTransient, ""},
		{&Refusal{Status: 409}, model.ErrTransient, ""},
		{&Refusal{Status: 412}, model.ErrInvalid, ""},
		{&Refusal{Status: 416}, model.ErrInvalid, "past the end"},
		{&Refusal{Status: 429}, model.ErrTransient, ""},
		{&Refusal{Status: 500}, model.ErrTransient, ""},
		{&Refusal{Status: 501}, model.ErrInvalid, ""},
		{&Refusal{Status: 503}, model.ErrTransient, ""},
		{io.ErrUnexpectedEOF, model.ErrTransient, ""},
		{context.Canceled, model.ErrTransient, ""},
	} {
		err := s.Error(t.Context(), "get", "a/b", test.err)
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%v: %v", test.err, err)
		}
		for _, class := range []error{bucket.ErrNotFound, model.ErrInvalid, model.ErrTransient} {
			if !errors.Is(test.want, class) && errors.Is(err, class) {
				t.Errorf("%v: also %v", test.err, class)
			}
		}
	}
}

func TestThrottled(t *testing.T) {
	after := "7"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", after)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	transport, err := NewTransport("")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]time.Duration{"7": 7 * time.Second, "soon": 0, "-1": 0, "999999": time.Hour,
		time.Now().Add(10 * time.Minute).UTC().Format(http.TimeFormat): 10 * time.Minute, "Mon, 02 Jan 2006 15:04:05 GMT": 0} {
		after = text
		ctx := Observe(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		var throttled *bucket.ThrottledError
		err = Store{}.Error(ctx, "get", "a", &Refusal{Status: resp.StatusCode})
		if !errors.As(err, &throttled) || (throttled.After-want).Abs() > 2*time.Second {
			t.Errorf("%q: %v, not %v", text, throttled, want)
		}
	}
}

func TestRange(t *testing.T) {
	const data = "0123456789"
	for _, test := range []struct {
		off, n       int64
		header, body string
		want         string
		class        error
	}{
		{0, 10, "bytes 0-9/10", data, data, nil},
		{3, 2, "bytes 3-4/10", "34", "34", nil},
		{3, 2, "bytes 3-4/*", "34", "34", nil},
		{3, 2, "bytes 3-4/10", "3", "", model.ErrTransient},
		{3, 2, "bytes 3-4/10", "345", "", model.ErrTransient},
		{3, 2, "bytes 2-3/10", "23", "", model.ErrTransient},
		{8, 4, "bytes 8-9/10", "89", "", model.ErrInvalid},
		{3, 2, "", data, "", model.ErrInvalid},
		{3, 2, "bytes 3-4", "34", "", model.ErrInvalid},
		{3, 2, "bytes x-4/10", "34", "", model.ErrInvalid},
		{3, 2, "bytes 3-/10", "34", "", model.ErrInvalid},
		{3, 2, "bytes 4-3/10", "34", "", model.ErrInvalid},
		{3, 2, "bytes 3-4/-1", "34", "", model.ErrInvalid},
		{10, 0, "bytes 9-9/10", "9", "", nil},
		{0, 0, "bytes 0-0/10", "0", "", nil},
		{0, 0, "", "", "", nil},
	} {
		r, err := NewRange(test.off, test.n)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Read(io.NopCloser(strings.NewReader(test.body)), test.header)
		if string(got) != test.want || test.class == nil && err != nil || !errors.Is(err, test.class) {
			t.Errorf("%d bytes from %d, %q: %q, %v", test.n, test.off, test.header, got, err)
		}
	}
	for _, r := range [][2]int64{{-1, 1}, {0, -1}, {1 << 62, 1 << 62}, {5, 1<<63 - 1}} {
		if _, err := NewRange(r[0], r[1]); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%v: %v", r, err)
		}
	}
}

func TestReadWhole(t *testing.T) {
	for _, test := range []struct {
		body   string
		length int64
		class  error
	}{
		{"abc", 3, nil}, {"", 0, nil}, {"ab", 3, model.ErrTransient}, {"abcd", 3, model.ErrTransient}, {"abc", -1, model.ErrInvalid}, {"abc", 1 << 50, model.ErrInvalid},
	} {
		got, err := ReadWhole(io.NopCloser(strings.NewReader(test.body)), test.length)
		if !errors.Is(err, test.class) || test.class == nil && string(got) != test.body {
			t.Errorf("%q of %d bytes: %q, %v", test.body, test.length, got, err)
		}
	}
}

// TestAuthorities connects to a server whose certificate only the parameter ca-file makes trusted.
func TestAuthorities(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	get := func(caFile string) error {
		transport, err := NewTransport(caFile)
		if err != nil {
			return err
		}
		resp, err := (&http.Client{Transport: transport}).Get(server.URL)
		if err != nil {
			return Store{}.Error(t.Context(), "get", "a", err)
		}
		return resp.Body.Close()
	}
	if err := get(""); !errors.Is(err, model.ErrTransient) || !strings.Contains(err.Error(), "ca-file") {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := get(file); !errors.Is(err, model.ErrInvalid) {
		t.Error(err)
	}
	for text, want := range map[string]error{"no certificate": model.ErrInvalid, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})): nil} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := get(file); !errors.Is(err, want) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}
