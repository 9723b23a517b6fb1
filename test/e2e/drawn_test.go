//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var carbon = flag.String("carbon", "", "folder with carbon-relay.py of carbon 1.1.10, for TestCarbonRelay")

// secondSchemas keeps a point of each second, so that renders have all points.
const secondSchemas = "[all]\npattern = .*\nretentions = 1s:1d\n"

// drawn returns the response of /render to a target.
func drawn(s *server, target, format string, from, until time.Time) ([]byte, error) {
	form := url.Values{"target": {target}, "format": {format}, "from": {fmt.Sprint(from.Unix())}, "until": {fmt.Sprint(until.Unix())}}
	resp, err := http.Get(s.url() + "/render?" + form.Encode())
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %s", target, resp.StatusCode, body)
	}
	return body, err
}

// drawnValues returns the values of a name that /render shows as JSON, by their seconds.
func drawnValues(s *server, name string, from, until time.Time) ([]sample, error) {
	body, err := drawn(s, name, "json", from, until)
	if err != nil {
		return nil, err
	}
	var all []struct {
		Target     string
		Datapoints [][2]*float64
	}
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, fmt.Errorf("%s: %w in %s", name, err, body)
	}
	if len(all) != 1 || all[0].Target != name {
		return nil, fmt.Errorf("%s: is %d series: %.200s", name, len(all), body)
	}
	var list []sample
	for _, p := range all[0].Datapoints {
		if p[0] != nil {
			list = append(list, sample{int64(*p[1]) * 1000, *p[0]})
		}
	}
	return list, nil
}

// imagesOf checks that /render draws a target as images, and that these show something.
func imagesOf(s *server, target string, from, until time.Time) error {
	colours := func(target string) (int, error) {
		body, err := drawn(s, target, "png", from, until)
		if err != nil {
			return 0, err
		}
		img, err := png.Decode(bytes.NewReader(body))
		if err != nil {
			return 0, fmt.Errorf("%s: png: %w", target, err)
		}
		seen := map[any]bool{}
		for y := range img.Bounds().Dy() {
			for x := range img.Bounds().Dx() {
				seen[img.At(x, y)] = true
			}
		}
		return len(seen), nil
	}
	n, err := colours(target)
	if err != nil {
		return err
	}
	none, err := colours("e2e.no.such.name")
	if err != nil {
		return err
	}
	if n <= none {
		return fmt.Errorf("%s: the image has %d colours, and that of nothing %d", target, n, none)
	}
	body, err := drawn(s, target, "svg", from, until)
	if err != nil {
		return err
	}
	d := xml.NewDecoder(bytes.NewReader(body))
	root, paths := "", 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: svg: %w", target, err)
		}
		if e, ok := token.(xml.StartElement); ok {
			if root == "" {
				root = e.Name.Local
			}
			if e.Name.Local == "path" || e.Name.Local == "polyline" {
				paths++
			}
		}
	}
	if root != "svg" || paths == 0 {
		return fmt.Errorf("%s: svg: the root is %q, and it has %d lines", target, root, paths)
	}
	return nil
}

// compareDrawn compares every column of collectd's files with what /render shows, and draws some as images.
func compareDrawn(s *server, columns []*csvColumn, from, to time.Time) (samples int, err error) {
	var diffs []string
	for i, c := range columns {
		got, err := drawnValues(s, c.graphite, from, to)
		if err != nil {
			return 0, err
		}
		want := c.seconds(got)
		for sec := range want {
			if sec > to.Unix() {
				delete(want, sec)
			}
		}
		samples += len(want)
		if d := diffColumn(want, got, 1); d != "" {
			diffs = append(diffs, c.graphite+": "+d)
		}
		if i%20 == 0 && len(want) > 1 {
			if err := imagesOf(s, c.graphite, from, to); err != nil {
				diffs = append(diffs, err.Error())
			}
		}
	}
	return samples, summary(diffs)
}

// TestCarbonRelay: points that a real carbon-relay forwards to Shale, over the protocols of lines and of
// pickles, are drawn as they were sent.
func TestCarbonRelay(t *testing.T) {
	t.Parallel()
	if *carbon == "" {
		t.Skip("no -carbon; make oracle-carbon has one")
	}
	dir := t.TempDir()
	schemas := writeFile(t, filepath.Join(dir, "storage-schemas.conf"), secondSchemas)
	s := newServer(t, dir)
	s.args = append(s.args, "--graphite.storage-schemas", schemas)
	s.start()
	until := time.Now().Truncate(time.Second)
	from := until.Add(-10 * time.Minute)
	for _, protocol := range []string{"line", "pickle"} {
		sent := map[string][]sample{}
		var lines strings.Builder
		for k := range 300 {
			at := from.Add(time.Duration(k+1) * 2 * time.Second)
			for i, name := range []string{"relayed." + protocol + ".a", "relayed." + protocol + ".größe", "relayed." + protocol + ";dc=eu;host=h1"} {
				if (k+i)%7 == 0 {
					continue
				}
				v := float64((k*k*(i+1))%1000) / 8
				sent[name] = append(sent[name], sample{at.UnixMilli(), v})
				fmt.Fprintf(&lines, "%s %v %d\n", name, v, at.Unix())
			}
		}
		relay := startCarbonRelay(t, dir, s, protocol)
		conn, err := net.Dial("tcp", relay)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, lines.String()); err != nil {
			t.Fatal(err)
		}
		conn.Close()
		eventually(t, "carbon-relay by "+protocol, func() error {
			for name, want := range sent {
				got, err := drawnValues(s, name, from, until)
				if err != nil {
					return err
				}
				if len(got) != len(want) {
					return fmt.Errorf("%s has %d values instead of %d", name, len(got), len(want))
				}
				for i := range got {
					if !got[i].same(want[i]) {
						return fmt.Errorf("%s has %v instead of %v", name, got[i], want[i])
					}
				}
				if err := imagesOf(s, name, from, until); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// startCarbonRelay runs a carbon-relay that forwards to the server, and returns its address for lines.
func startCarbonRelay(t *testing.T, dir string, s *server, protocol string) string {
	t.Helper()
	listens := freeAddr(t)
	dir = filepath.Join(dir, "carbon-"+protocol)
	to := map[string]string{"line": s.graphiteAddr, "pickle": s.pickleAddr}[protocol]
	for _, sub := range []string{"conf", "storage/log"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_, port, err := net.SplitHostPort(listens)
	if err != nil {
		t.Fatal(err)
	}
	conf := writeFile(t, filepath.Join(dir, "conf", "carbon.conf"), fmt.Sprintf(`[relay]
LINE_RECEIVER_INTERFACE = 127.0.0.1
LINE_RECEIVER_PORT = %s
PICKLE_RECEIVER_PORT = 0
RELAY_METHOD = rules
DESTINATIONS = %[2]s:a
DESTINATION_PROTOCOL = %[3]s
CARBON_METRIC_INTERVAL = 0
`, port, to, protocol))
	writeFile(t, filepath.Join(dir, "conf", "storage-schemas.conf"), secondSchemas) // carbon wants one
	writeFile(t, filepath.Join(dir, "conf", "relay-rules.conf"), "[default]\ndefault = true\ndestinations = "+to+":a\n")
	p := start(t, dir, "carbon-relay", "/usr/bin/env", "GRAPHITE_ROOT="+dir, filepath.Join(*carbon, "python"), filepath.Join(*carbon, "carbon-relay.py"), "--debug", "--config="+conf,
		"--logdir="+dir, "--pidfile="+filepath.Join(dir, "pid"), "start")
	for began := time.Now(); time.Since(began) < settle; time.Sleep(50 * time.Millisecond) {
		if p.ended() {
			t.Fatalf("carbon-relay ended: %v\n%s", p.err, p.logTail(4<<10))
		}
		if conn, err := net.Dial("tcp", listens); err == nil {
			conn.Close()
			return listens
		}
	}
	t.Fatalf("carbon-relay does not listen:\n%s", p.logTail(4<<10))
	return ""
}
