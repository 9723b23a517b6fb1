package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/model"
)

// recorder is a store that accepts everything, and keeps what it was sent.
type recorder struct {
	mu   sync.Mutex
	sent []string
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var text strings.Builder
	text.WriteString(req.Method + " " + req.Host + req.URL.String() + "\n")
	_ = req.Header.Write(&text)
	r.mu.Lock()
	r.sent = append(r.sent, text.String()+string(body[:min(len(body), 1000)]))
	r.mu.Unlock()
	if req.URL.Query().Has("uploadType") { // Google
		size := contentSize(body)
		_ = json.NewEncoder(w).Encode(map[string]string{"size": size})
		return
	}
	w.Header().Set("ETag", `"x"`)
	if req.Header.Get("X-Ms-Version") != "" { // Azure
		w.WriteHeader(http.StatusCreated)
	}
}

// contentSize returns the size of the content of an upload to Google, as JSON has it.
func contentSize(body []byte) string {
	parts := bytes.SplitN(body, []byte("\r\n\r\n"), 3)
	content := parts[2][:bytes.LastIndex(parts[2], []byte("\r\n--"))]
	text, _ := json.Marshal(len(content))
	return string(text)
}

// TestOptions looks for the parameters of URLs in requests.
func TestOptions(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	for _, test := range []struct {
		url, credentials string
		always           []string
		large            string // only in the request for a large object
	}{
		{"s3://name/p?path-style=1&encryption=kms:KEY&storage-class=STANDARD_IA&region=eu-1", "[default]\naws_access_key_id = id\naws_secret_access_key = of-test\n",
			[]string{"/name/p/object", "If-None-Match: *", "X-Amz-Server-Side-Encryption: aws:kms", "Kms-Key-Id: KEY", "/eu-1/s3/aws4_request", "Credential=id/"}, "X-Amz-Storage-Class: STANDARD_IA"},
		{"s3://name?path-style=1&encryption=aes256&storage-class=GLACIER_IR&anonymous=1", "", []string{"/name/object", "X-Amz-Server-Side-Encryption: AES256"}, "X-Amz-Storage-Class: GLACIER_IR"},
		{"gs://name/p?anonymous=1&encryption=kms:projects/1&storage-class=NEARLINE", "",
			[]string{"/upload/storage/v1/b/name/o?", "ifGenerationMatch=0", "kmsKeyName=projects%2F1", `"name":"p/object"`}, `"storageClass":"NEARLINE"`},
		{"azblob://name/p?account=acc&encryption=scope:SC&storage-class=Cool", "b2YtdGVzdA==",
			[]string{"/name/p%2Fobject", "If-None-Match: *", "X-Ms-Encryption-Scope: SC", "Authorization: SharedKey acc:"}, "X-Ms-Access-Tier: Cool"},
		{"azblob://name?anonymous=1&storage-class=Cool", "", []string{"/name/object"}, "X-Ms-Access-Tier: Cool"},
		{"azblob://name?storage-class=Cool", "?sv=1&sig=abc", []string{"/name/object", "sig=abc"}, "X-Ms-Access-Tier: Cool"},
	} {
		r := &recorder{}
		server := httptest.NewServer(r)
		defer server.Close()
		text := test.url + "&endpoint=" + server.URL
		if test.credentials != "" {
			if err := os.WriteFile(key, []byte(test.credentials), 0o600); err != nil {
				t.Fatal(err)
			}
			text += "&credentials-file=" + key
		}
		l, err := location.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := Open(vfs.Default, l)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{128<<10 - 1, 128 << 10} {
			created, err := b.PutIfAbsent(t.Context(), "object", make([]byte, size))
			if err != nil || !created {
				t.Errorf("%s: %v, %v", test.url, created, err)
				continue
			}
			sent := r.sent[len(r.sent)-1]
			for _, want := range test.always {
				if !strings.Contains(sent, want) {
					t.Errorf("%s: %q is missing in\n%s", test.url, want, sent)
				}
			}
			if has := strings.Contains(sent, test.large); has != (size >= 128<<10) {
				t.Errorf("%s: %q with %d bytes: %v\n%s", test.url, test.large, size, has, sent)
			}
		}
	}
}

// TestOpenRefuses opens locations whose files are missing or wrong. No error has what the file holds.
func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("Hunter2!"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("[default]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"s3://name?ca-file=/nonexistent":                   "no such file",
		"s3://name?ca-file=" + file:                        "no certificate",
		"s3://name?credentials-file=/nonexistent":          "no such file",
		"s3://name?credentials-file=" + file:               "expected a section [default]",
		"s3://name?credentials-file=" + empty:              "expected a section [default]",
		"gs://name?credentials-file=/nonexistent":          "no such file",
		"gs://name?credentials-file=" + file:               "expected JSON",
		"azblob://name?account=a&credentials-file=/no":     "no such file",
		"azblob://name?account=a&credentials-file=" + file: "expected a connection string",
		file: "not a folder",
	} {
		l, err := location.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = Open(vfs.Default, l)
		if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Hunter2") {
			t.Errorf("%s: %v; not %q", text, err, want)
		}
	}
}
