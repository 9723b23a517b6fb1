package response

import (
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/grafana/loki/v3/pkg/querier/queryrange"
)

// mostStats matches the statistics of a response but for the summary.
var mostStats = regexp.MustCompile(`("stats":\{"summary":\{[^}]*\}).*"bloomFilterTime":0\}\}`)

// unescape makes text of JSON as we write it: without escapes for HTML.
var unescape = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

func TestResponses(t *testing.T) {
	text, err := os.ReadFile("../../../internal/api/loki/testdata/formats.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Path, JSON string
		Protobuf   []byte
	}
	if err := json.Unmarshal(text, &all); err != nil || len(all) == 0 {
		t.Fatal(len(all), err)
	}
	for _, r := range all {
		var message queryrange.QueryResponse
		if err := message.Unmarshal(r.Protobuf); err != nil {
			t.Errorf("%s: %v", r.Path, err)
			continue
		}
		response, err := queryrange.QueryResponseUnwrap(&message)
		if err != nil {
			t.Errorf("%s: %v", r.Path, err)
			continue
		}
		request := httptest.NewRequest("GET", "http://loki/loki/api/v1/"+strings.NewReplacer(" ", "%20", "|", "%7C").Replace(r.Path), nil)
		request.RequestURI = request.URL.Path
		out, err := queryrange.DefaultCodec.EncodeResponse(t.Context(), request, response)
		if err != nil {
			t.Errorf("%s: %v", r.Path, err)
			continue
		}
		body, err := io.ReadAll(out.Body)
		if err != nil {
			t.Fatal(err)
		}
		got := unescape.Replace(mostStats.ReplaceAllString(string(body), "$1}"))
		if strings.Contains(r.Path, `{s=`) {
			got = strings.Replace(got, "[1000,", "[1,", 1) // Loki takes milliseconds for seconds here
		}
		if strings.TrimSpace(got) != strings.TrimSpace(r.JSON) {
			t.Errorf("%s:\nwe:   %q\nLoki: %q", r.Path, r.JSON, got)
		}
		// What Loki writes itself is what we have written, except that it writes all statistics.
		again, err := queryrange.QueryResponseWrap(response)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.Marshal(); err != nil {
			t.Error(err)
		}
	}
}
