package victorialogstest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/read/logql/logqltest"
	"github.com/shaledb/shale/internal/read/victorialogs"
	"github.com/shaledb/shale/internal/write/logs"
)

// Settings returns settings for a server whose account is that of the tenant of data sets.
func Settings(t testing.TB, server, account string) victorialogs.Settings {
	s := victorialogs.Settings{Source: victorialogs.At(server), Requests: 8}
	if err := s.Accounts.UnmarshalText([]byte(logqltest.Tenant + "=" + account)); err != nil {
		t.Fatal(err)
	}
	return s
}

// Source returns a source that adds nothing to lines.
func Source(t testing.TB, s victorialogs.Settings) *victorialogs.Source {
	src := victorialogs.New(victorialogs.Options{Settings: s, Seed: 1, Rules: logs.Rules{}, Registerer: prometheus.NewRegistry()})
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	})
	return src
}

// noMessage is the text that VictoriaLogs gives to a line without one.
const noMessage = "missing _msg field; see https://docs.victoriametrics.com/victorialogs/keyconcepts/#message-field"

// AsStored returns a copy of a data set as VictoriaLogs keeps it: lines of one time in no order of arrival,
// which here is that of their text and metadata; a text for empty lines; and no structured metadata that
// repeats a label of the stream.
func AsStored(d *logqltest.Dataset) *logqltest.Dataset {
	out := *d
	out.Streams = slices.Clone(d.Streams)
	for i := range out.Streams {
		s := &out.Streams[i]
		s.Lines = slices.Clone(s.Lines)
		for k := range s.Lines {
			l := &s.Lines[k]
			if l.Text == "" {
				l.Text = noMessage
			}
			l.Metadata = without(l.Metadata, s.Labels)
		}
		slices.SortStableFunc(s.Lines, func(a, b logqltest.Line) int {
			return cmp.Or(cmp.Compare(a.Time, b.Time), strings.Compare(a.Text, b.Text), slices.Compare(a.Metadata, b.Metadata))
		})
	}
	return &out
}

// without returns pairs of names and values that are not among others.
func without(pairs, others []string) (out []string) {
	for i := 0; i < len(pairs); i += 2 {
		repeats := false
		for k := 0; k < len(others); k += 2 {
			repeats = repeats || pairs[i] == others[k] && pairs[i+1] == others[k+1]
		}
		if !repeats {
			out = append(out, pairs[i], pairs[i+1])
		}
	}
	return out
}

// Push stores a data set in an account of a real server, and waits until it can be queried by its streams,
// which VictoriaLogs indexes later than the lines.
func Push(t testing.TB, server, account string, d *logqltest.Dataset) {
	type stream struct {
		Stream map[string]string `json:"stream"`
		Values [][]any           `json:"values"`
	}
	var body struct {
		Streams []stream `json:"streams"`
	}
	object := func(pairs []string) map[string]string {
		out := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
	lines := 0
	for _, s := range d.Streams {
		x := stream{Stream: object(s.Labels)}
		for _, l := range s.Lines {
			lines++
			x.Values = append(x.Values, []any{strconv.FormatInt(l.Time, 10), l.Text, object(l.Metadata)})
		}
		body.Streams = append(body.Streams, x)
	}
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	if code, text := Post(t, server+"/insert/loki/api/v1/push?disable_message_parsing=1", account, "application/json", b); code != http.StatusNoContent {
		t.Fatalf("push: %d %s", code, text)
	}
	query := url.Values{"query": {`{app!=""} _stream:{app!=""} | stats count() n`}}
	want := fmt.Sprintf("{\"n\":\"%d\"}\n", lines)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		_, text := Post(t, server+"/select/logsql/query", account, "application/x-www-form-urlencoded", []byte(query.Encode()))
		if string(text) == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s has %s of %d lines", server, text, lines)
		}
	}
}

// Post sends a request to a real server. Its connection ends with the test.
func Post(t testing.TB, address, account, kind string, body []byte) (code int, text []byte) {
	req, err := http.NewRequest("POST", address, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	id, project, _ := strings.Cut(account, ":")
	req.Header.Set("AccountID", id)
	req.Header.Set("ProjectID", project)
	req.Header.Set("Content-Type", kind)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, text
}
