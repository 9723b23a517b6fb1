//go:build e2e

package objectstores

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/signer"

	"github.com/shaledb/shale/internal/bucket/check"
	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/model"
)

// liar is a proxy before a real S3 server, which breaks one promise of the server.
type liar struct {
	addr string // of the server
	// request changes a request, whose signature is made new if it returns true. It may answer by itself.
	request func(l *liar, w http.ResponseWriter, r *http.Request) (sign, answered bool)
	// response changes a response.
	response func(resp *http.Response) error
}

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sign := false
	if l.request != nil {
		var answered bool
		if sign, answered = l.request(l, w, r); answered {
			return
		}
	}
	p := &httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host = "http", l.addr
			pr.Out.Host = pr.In.Host // it is signed
			if sign {
				l.sign(pr.Out)
			}
		},
		ModifyResponse: l.response,
	}
	p.ServeHTTP(w, r)
}

// sign gives a request that was changed a valid signature.
func (l *liar) sign(r *http.Request) {
	r.Host = l.addr
	for _, h := range []string{"Authorization", "X-Amz-Date", "Content-Length"} {
		r.Header.Del(h)
	}
	*r = *signer.SignV4(*r, "shale", "of-the-test", "", "us-east-1")
}

func isObject(r *http.Request) bool {
	return strings.Count(r.URL.Path, "/") > 1 && r.URL.RawQuery == ""
}

// without drops a header from requests for objects.
func without(header string) func(*liar, http.ResponseWriter, *http.Request) (bool, bool) {
	return func(_ *liar, _ http.ResponseWriter, r *http.Request) (sign, answered bool) {
		if r.Header.Get(header) == "" {
			return false, false
		}
		r.Header.Del(header)
		return true, false
	}
}

// looksFirst decides about If-None-Match by a look at what is there, and then waits.
func looksFirst(l *liar, w http.ResponseWriter, r *http.Request) (sign, answered bool) {
	if r.Header.Get("If-None-Match") == "" {
		return false, false
	}
	head, err := http.NewRequest(http.MethodHead, "http://"+l.addr+r.URL.EscapedPath(), nil)
	if err != nil {
		return false, false
	}
	head.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
	l.sign(head)
	resp, err := http.DefaultClient.Do(head)
	if err != nil {
		return false, false
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		w.WriteHeader(http.StatusPreconditionFailed)
		return false, true
	}
	time.Sleep(50 * time.Millisecond)
	r.Header.Del("If-None-Match")
	return true, false
}

// body replaces the bodies of objects.
func body(change func(resp *http.Response, data []byte) []byte) func(*http.Response) error {
	return func(resp *http.Response) error {
		if resp.Request.Method != http.MethodGet || !isObject(resp.Request) || resp.StatusCode/100 != 2 {
			return nil
		}
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		resp.Body = io.NopCloser(bytes.NewReader(change(resp, data)))
		return nil
	}
}

// emptyLists replaces the first lists.
func emptyLists(times int32) func(*http.Response) error {
	var done atomic.Int32
	return func(resp *http.Response) error {
		if !strings.Contains(resp.Request.URL.RawQuery, "list-type=2") || done.Add(1) > times {
			return nil
		}
		resp.Body.Close()
		const empty = `<ListBucketResult><Name>shale-test</Name><IsTruncated>false</IsTruncated></ListBucketResult>`
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(empty)), int64(len(empty))
		resp.Header.Set("Content-Length", strconv.Itoa(len(empty)))
		return nil
	}
}

// TestCheckRefuses puts a proxy before a real S3 server that breaks one promise. The check refuses each, by
// the step that the table names, and accepts the proxy that changes nothing.
func TestCheckRefuses(t *testing.T) {
	s := Start(t, Versity)
	for _, test := range []struct {
		name string
		liar liar
		step string // "": accepted
		text string
	}{
		{"changes nothing", liar{}, "", ""},
		{"ignores If-None-Match", liar{request: without("If-None-Match")}, "create if absent", "ignores If-None-Match"},
		{"does not know If-None-Match", liar{request: func(_ *liar, w http.ResponseWriter, r *http.Request) (bool, bool) {
			if r.Header.Get("If-None-Match") == "" {
				return false, false
			}
			w.WriteHeader(http.StatusNotImplemented)
			return false, true
		}}, "create if absent", "501"},
		{"decides races by a look", liar{request: looksFirst}, "create in a race", "concurrent attempts"},
		{"ignores ranges", liar{request: without("Range")}, "range", "ignored the range"},
		{"truncates bodies", liar{response: body(func(_ *http.Response, data []byte) []byte { return data[:len(data)/2] })}, "get", "truncated"},
		{"announces truncated bodies", liar{response: body(func(resp *http.Response, data []byte) []byte {
			resp.Header.Set("Content-Length", strconv.Itoa(len(data)/2))
			return data[:len(data)/2]
		})}, "get", "came back as"},
		{"changes a byte", liar{response: body(func(_ *http.Response, data []byte) []byte {
			if len(data) > 0 {
				data[0] ^= 1
			}
			return data
		})}, "get", "came back as"},
		{"lists late", liar{response: emptyLists(1)}, "list", "lists late"},
		{"does not let delete", liar{request: func(_ *liar, w http.ResponseWriter, r *http.Request) (bool, bool) {
			if r.Method == http.MethodDelete {
				w.WriteHeader(http.StatusForbidden)
			}
			return false, r.Method == http.MethodDelete
		}}, "delete", "refuses access"},
		{"deletes nothing", liar{request: func(_ *liar, w http.ResponseWriter, r *http.Request) (bool, bool) {
			if r.Method == http.MethodDelete {
				w.WriteHeader(http.StatusNoContent)
			}
			return false, r.Method == http.MethodDelete
		}}, "missing object", "not there"},
		{"is overloaded", liar{request: func(_ *liar, w http.ResponseWriter, _ *http.Request) (bool, bool) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
			return false, true
		}}, "put", "503"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := s.before(t, &test.liar)
			l.Prefix = strings.ReplaceAll(test.name, " ", "-")
			err := check.Run(t.Context(), open(t, l), check.Thorough, nil)
			var failed *check.Failure
			switch {
			case test.step == "" && err != nil:
				t.Error(err)
			case test.step != "" && (!errors.As(err, &failed) || failed.Step != test.step || !strings.Contains(err.Error(), test.text)):
				t.Errorf("%v; not step %q with %q", err, test.step, test.text)
			}
			t.Log(err)
		})
	}
}

// before starts a proxy before a store, and returns the location by way of it.
func (s *Store) before(t *testing.T, l *liar) location.Location {
	l.addr = s.Addr
	proxy := httptest.NewServer(l)
	t.Cleanup(proxy.Close)
	where := s.Location
	where.Endpoint = proxy.URL
	return where
}

// TestTruncatedIsTransient cuts every second body: no call returns a part of an object, and the next attempt
// has all of it.
func TestTruncatedIsTransient(t *testing.T) {
	s := Start(t, Versity)
	var calls atomic.Int32
	l := s.before(t, &liar{response: body(func(_ *http.Response, data []byte) []byte {
		if calls.Add(1)%2 == 1 {
			return data[:len(data)/3]
		}
		return data
	})})
	b, content := open(t, l), strings.Repeat("0123456789", 10_000)
	if err := b.Put(t.Context(), "a", strings.NewReader(content), int64(len(content))); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if got, err := b.GetRange(t.Context(), "a", 7, 50_000); !errors.Is(err, model.ErrTransient) || got != nil {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if got, err := b.GetRange(t.Context(), "a", 7, 50_000); err != nil || string(got) != content[7:50_007] {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
}

// TestSecretsStayOut looks for credentials in the errors about them.
func TestSecretsStayOut(t *testing.T) {
	dir := t.TempDir()
	sas := write(t, dir, "?sv=2021&sig=VERYSECRET")
	l := parse(t, "azblob://name?endpoint=http://127.0.0.1:1/x&credentials-file=%s", sas)
	_, err := open(t, l).Get(t.Context(), "a")
	if err == nil || strings.Contains(err.Error(), "VERYSECRET") || !errors.Is(err, model.ErrTransient) {
		t.Error(err)
	}
	if u, err := url.Parse(l.String()); err != nil || strings.Contains(u.String(), "VERYSECRET") {
		t.Error(u, err)
	}
}
