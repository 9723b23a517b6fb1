package auth

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/model"
)

// line is a token of the file.
func line(name, token, tenants, rights, more string) string {
	return fmt.Sprintf("- {name: %s, sha256: %s, tenants: [%s], rights: [%s]%s}\n", name, Sum(token), tenants, rights, more)
}

var file = "tokens:\n" + line("reader", "shale_r", "a, b", "read", "") + line("writer", "shale_w", "a", "write", "") +
	line("operator", "shale_o", `"*"`, "read, delete, admin", "") + line("old", "shale_old", "a", "read", `, expires: "2026-01-01T00:00:00Z"`) +
	line("new", "shale_new", "a", "read", `, expires: "2026-01-01T00:00:01Z"`)

// world is a guard with a log.
type world struct {
	*Guard
	path string
	log  bytes.Buffer
}

func newWorld(t *testing.T) *world {
	w := &world{path: filepath.Join(t.TempDir(), "keys.yaml")}
	w.write(t, file)
	var err error
	w.Guard, err = New(Options{
		File: w.path, Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
		Now: func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(w.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ask sends a request to an endpoint, which responds with the tenant and the token that it sees.
func (w *world) ask(needs Right, method string, header ...string) *httptest.ResponseRecorder {
	h := w.Protect(needs, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get(model.TenantHeader), r.Header.Get("Authorization"))
	}))
	r := httptest.NewRequest(method, "/x?match=up", nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

func basicOf(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// TestProtect: which requests get in, as which tenant, and what the others learn.
func TestProtect(t *testing.T) {
	w := newWorld(t)
	basic := func(user, password string) string { return "Basic " + basicOf(user, password) }
	const tenant = model.TenantHeader
	for _, test := range []struct {
		name   string
		needs  Right
		header []string
		status int
		body   string
	}{
		{"open", Open, nil, 200, ""},
		{"no token", Read, nil, 401, "a token is required"},
		{"unknown", Read, []string{"Authorization", "Bearer shale_x"}, 401, "not known"},
		{"the hash", Read, []string{"Authorization", "Bearer " + Sum("shale_r")}, 401, "not known"},
		{"bearer", Read, []string{"Authorization", "Bearer shale_r"}, 200, "a"},
		{"another case", Read, []string{"Authorization", "bEARER  shale_r "}, 200, "a"},
		{"basic", Read, []string{"Authorization", basic("anyone", "shale_r")}, 200, "a"},
		{"token as the user", Read, []string{"Authorization", basic("shale_r", "")}, 401, "expected Authorization"},
		{"bad base64", Read, []string{"Authorization", "Basic !"}, 401, "expected Authorization"},
		{"another scheme", Read, []string{"Authorization", "Digest shale_r"}, 401, "expected Authorization"},
		{"two headers", Read, []string{"Authorization", "Bearer shale_x", "Authorization", "Bearer shale_r"}, 401, "one header"},
		{"long", Read, []string{"Authorization", "Bearer " + strings.Repeat("x", 10000)}, 401, "at most 8192 bytes"},
		{"a tenant of two", Read, []string{"Authorization", "Bearer shale_r", tenant, "b"}, 200, "b"},
		{"two of two tenants", Read, []string{"Authorization", "Bearer shale_r", tenant, "b|a"}, 200, "b|a"},
		{"another tenant", Read, []string{"Authorization", "Bearer shale_r", tenant, "c"}, 403, `not for the tenant "c"`},
		{"another among others", Read, []string{"Authorization", "Bearer shale_r", tenant, "a|c"}, 403, `not for the tenant "c"`},
		{"an empty one", Read, []string{"Authorization", "Bearer shale_r", tenant, "a|"}, 403, `not for the tenant ""`},
		{"two tenant headers", Read, []string{"Authorization", "Bearer shale_r", tenant, "a", tenant, "c"}, 403, "one header"},
		{"any tenant", Read, []string{"Authorization", "Bearer shale_o", tenant, "c"}, 200, "c"},
		{"another right", Write, []string{"Authorization", "Bearer shale_r"}, 403, `"reader" lacks the right write`},
		{"the right", Write, []string{"Authorization", "Bearer shale_w"}, 200, "a"},
		{"delete is not read", Delete, []string{"Authorization", "Bearer shale_r"}, 403, "lacks the right delete"},
		{"admin is not write", Write, []string{"Authorization", "Bearer shale_o"}, 403, "lacks the right write"},
		{"expired", Read, []string{"Authorization", "Bearer shale_old"}, 401, "has expired at 2026-01-01"},
		{"not yet", Read, []string{"Authorization", "Bearer shale_new"}, 200, "a"},
	} {
		rec := w.ask(test.needs, http.MethodGet, test.header...)
		if rec.Code != test.status || !strings.HasPrefix(rec.Body.String(), test.body) && !strings.Contains(rec.Body.String(), test.body) {
			t.Errorf("%s: got %d %s, want %d %s", test.name, rec.Code, rec.Body, test.status, test.body)
		}
		if rec.Code == 200 && strings.Contains(rec.Body.String(), "shale_") {
			t.Errorf("%s: the endpoint sees the token", test.name)
		}
		if schemes := rec.Result().Header.Values("WWW-Authenticate"); (len(schemes) == 2) != (rec.Code == 401) {
			t.Errorf("%s: WWW-Authenticate is %q", test.name, schemes)
		}
	}
	if n := testutil.ToFloat64(w.refused.WithLabelValues("right")); n != 3 {
		t.Errorf("%v refusals for want of a right", n)
	}
	// A browser asks whether it may; nothing else is let through.
	if a, b := w.ask(Read, http.MethodOptions).Code, w.ask(Admin, http.MethodOptions).Code; a != 200 || b != 401 {
		t.Errorf("OPTIONS got %d and %d", a, b)
	}
}

// TestAudit: deletions are logged with the names of their tokens, refused or not, and queries are not.
func TestAudit(t *testing.T) {
	w := newWorld(t)
	w.ask(Read, http.MethodPost, "Authorization", "Bearer shale_r")
	if w.log.Len() > 0 {
		t.Errorf("a query is logged: %s", &w.log)
	}
	w.ask(Delete, http.MethodPost, "Authorization", "Bearer shale_o", model.TenantHeader, "b")
	w.ask(Delete, http.MethodPost, "Authorization", "Bearer shale_r")
	w.ask(Delete, http.MethodPost)
	got := strings.Split(strings.TrimSpace(w.log.String()), "\n")
	for i, want := range []string{"client=operator by=token", "client=reader by=token", `client="" by=""`} {
		status := []string{"status=200", "status=403", "status=401"}[i]
		if len(got) != 3 || !strings.Contains(got[i], want) || !strings.Contains(got[i], status) || !strings.Contains(got[i], "params=\"match=up\"") {
			t.Fatalf("line %d is not of %s with %s:\n%s", i, want, status, &w.log)
		}
	}
	if strings.Contains(w.log.String(), "shale_") {
		t.Errorf("a token is in the log: %s", &w.log)
	}
}

// TestReload: a changed file counts, a broken one does not, and SIGHUP does not wait.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, stop := context.WithCancel(t.Context())
		hurry := make(chan os.Signal)
		go w.Watch(ctx, time.Second, hurry)
		status := func() int { return w.ask(Read, http.MethodGet, "Authorization", "Bearer shale_r").Code }
		for _, step := range []struct {
			text         string
			status       int
			fresh        float64
			byHand, gone bool
		}{
			{"tokens: []\n", 401, 1, false, false},
			{"tokens: [broken]\n", 401, 0, false, false},
			{file, 200, 1, true, false},
			{"", 200, 0, false, true},
			{"tokens:\n" + line("writer", "shale_w", "a", "write", ""), 401, 1, false, false},
		} {
			w.write(t, step.text)
			if step.gone {
				_ = os.Remove(w.path)
			}
			if step.byHand {
				hurry <- os.Interrupt
				time.Sleep(600 * time.Millisecond) // until the file has settled, and before the next look
			} else {
				time.Sleep(3 * time.Second)
			}
			synctest.Wait()
			if got := status(); got != step.status || testutil.ToFloat64(w.fresh) != step.fresh {
				t.Errorf("%.40q: status %d, fresh %v", step.text, got, testutil.ToFloat64(w.fresh))
			}
		}
		stop()
		synctest.Wait()
	})
}

// TestFiles: an error names the token and what is wrong, and quotes no hash.
func TestFiles(t *testing.T) {
	good := Sum("x")
	for text, want := range map[string]string{
		"tokens: [{sha256: " + good + ", tenants: [a], rights: [read]}]":                      "name: has no value",
		"tokens: [{name: x, sha256: shale_secret, tenants: [a], rights: [read]}]":             "sha256: expected 64",
		"tokens: [{name: x, sha256: " + good + ", tenants: [a], rights: [root]}]":             `unknown right "root"`,
		"tokens: [{name: x, sha256: " + good + ", tenants: [a]}]":                             "rights: expected",
		"tokens: [{name: x, sha256: " + good + ", rights: [read]}]":                           "tenants: expected",
		"tokens: [{name: x, sha256: " + good + ", tenants: [a, '*'], rights: [read]}]":        "tenants: expected",
		"tokens: [{name: x, sha256: " + good + ", tenants: [a|b], rights: [read]}]":           "tenants: expected",
		"tokens: [{name: x, sha256: " + good + ", tenants: [a], rights: [read], expires: 1}]": "expires: expected",
		"tokens: [{name: x, secret: y}]":                                                      "expected lists",
		"- x":                                                                                 "expected lists",
		"tokens: [{name: x, sha256: " + good + ", tenants: [a], rights: [read]}, {name: y, sha256: " + good + ", tenants: [a], rights: [read]}]": `token 2 ("y"): has the sha256 of "x"`,
	} {
		_, err := ParseKeys([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") && !strings.Contains(want, "lists") || strings.Contains(err.Error(), good) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestNewToken: tokens are long and differ.
func TestNewToken(t *testing.T) {
	r := Request{Name: "it's", Tenants: []string{"a"}, Rights: []string{"read", "write"}, Expires: time.Hour}
	a, line, err := r.Make(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	k, err := ParseKeys([]byte("tokens:\n" + line))
	if err != nil || k.Find(a) == nil || !k.Find(a).May(Write) || k.Find(a).May(Delete) || k.Find(a).Name != "it's" {
		t.Errorf("%v: %s", err, line)
	}
	r.Rights = []string{"root"}
	if _, _, err := r.Make(time.Now()); err == nil {
		t.Error("an unknown right is taken")
	}
	b, _, _ := r.Make(time.Now())
	if a == b || len(a) != len(Prefix)+32 || strings.ToLower(a) != a {
		t.Errorf("%s, %s", a, b)
	}
}

// FuzzHeader: no header panics, and none but the token gets in.
func FuzzHeader(f *testing.F) {
	for _, s := range []string{"", "Bearer", "Bearer x", "Basic", "Basic eDp4", "Basic =", "bearer \x00", "Bearer shale_t"} {
		f.Add(s, "a|b")
	}
	k, err := ParseKeys([]byte("tokens:\n" + line("t", "shale_t", "a", "read", "")))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, header, tenant string) {
		h := http.Header{"Authorization": {header}, http.CanonicalHeaderKey(model.TenantHeader): {tenant}}
		grant, denied := k.admit(context.Background(), h, nil, Read, time.Now())
		token, _ := tokenOf(http.Header{"Authorization": {header}})
		if in := denied == nil; in != (token == "shale_t" && (tenant == "a" || tenant == "" || strings.Trim(tenant, "|a") == "" && !strings.Contains("|"+tenant+"|", "||") && !strings.Contains(tenant, "aa"))) {
			t.Errorf("%q of %q: %v, %v", header, tenant, grant, denied)
		}
	})
}

func BenchmarkAdmit(b *testing.B) {
	k, err := ParseKeys([]byte(file))
	if err != nil {
		b.Fatal(err)
	}
	h := http.Header{"Authorization": {"Bearer shale_r"}, http.CanonicalHeaderKey(model.TenantHeader): {"b"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, denied := k.admit(context.Background(), h, nil, Read, time.Now()); denied != nil {
			b.Fatal(denied)
		}
	}
}
