//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
)

// startCollectd runs a collectd that reads this machine every second and writes rates to CSV files and to the
// server.
func startCollectd(t *testing.T, dir string, s *server) (p *process, csvDir string) {
	t.Helper()
	host, port := s.graphiteHostPort()
	csvDir = filepath.Join(dir, "csv")
	conf := writeFile(t, filepath.Join(dir, "collectd.conf"), fmt.Sprintf(`
Hostname "e2e.example"
FQDNLookup false
Interval 1
BaseDir "%s"
PIDFile "%s/collectd.pid"
PluginDir "/usr/lib/collectd"
TypesDB "/usr/share/collectd/types.db"
LoadPlugin logfile
<Plugin logfile>
  LogLevel "info"
  File "stderr"
</Plugin>
LoadPlugin cpu
LoadPlugin df
LoadPlugin disk
LoadPlugin interface
LoadPlugin load
LoadPlugin memory
LoadPlugin processes
LoadPlugin swap
LoadPlugin uptime
LoadPlugin vmem
LoadPlugin csv
<Plugin csv>
  DataDir "%s"
  StoreRates true
</Plugin>
LoadPlugin write_graphite
<Plugin write_graphite>
  <Node "e2e">
    Host "%s"
    Port "%s"
    Protocol "tcp"
    StoreRates true
    AlwaysAppendDS true
    LogSendErrors true
  </Node>
</Plugin>
`, dir, dir, csvDir, host, port))
	return start(t, dir, "collectd", "/usr/sbin/collectd", "-f", "-C", conf), csvDir
}

// csvColumn is one value of one file: collectd's data of one Graphite name.
type csvColumn struct {
	graphite string
	// rows are in the order of time; nans counts those that had no number.
	rows []csvRow
	nans int
}

// csvRow is a value at a time in milliseconds.
type csvRow struct {
	ms    int64
	value float64
}

// seconds returns the rows as Graphite has them, by whole second. collectd rounds times to the nearest
// second, and the later of two values stays. The file has times rounded to milliseconds: a row at half a
// second may have been rounded either way, so the server's choice is accepted.
func (c *csvColumn) seconds(got []sample) map[int64]float64 {
	has := map[int64]float64{}
	for _, s := range got {
		has[s.ms/1000] = s.value
	}
	want := map[int64]float64{}
	for _, r := range slices.Backward(c.rows) {
		sec := (r.ms + 500) / 1000
		if half := r.ms % 1000; half >= 499 && half <= 501 {
			sec = r.ms/1000 + 1
			v, there := has[sec]
			if _, taken := want[sec]; taken || !there || !near(v, r.value) {
				if v, there = has[sec-1]; there && near(v, r.value) {
					sec--
				}
			}
		}
		if _, taken := want[sec]; !taken {
			want[sec] = r.value
		}
	}
	return want
}

// near compares a value of a line, in 15 digits, with that of the file, with 6 decimals.
func near(line, file float64) bool { return math.Abs(line-file) <= 1e-6+1e-14*math.Abs(file) }

// readCSV reads all files that the csv plugin has written.
func readCSV(dir string) ([]*csvColumn, error) {
	byName := map[string]*csvColumn{}
	var columns []*csvColumn
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		prefix, err := graphitePrefix(dir, name)
		if err != nil {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Scan()
		header := strings.Split(lines.Text(), ",")
		for lines.Scan() {
			fields := strings.Split(lines.Text(), ",")
			if len(fields) != len(header) {
				return fmt.Errorf("%s: line %q has not %d fields", name, lines.Text(), len(header))
			}
			at, err := strconv.ParseFloat(fields[0], 64)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			for i, field := range fields[1:] {
				graphite := prefix + "." + escape(header[i+1])
				c := byName[graphite]
				if c == nil {
					c = &csvColumn{graphite: graphite}
					byName[graphite] = c
					columns = append(columns, c)
				}
				v, err := strconv.ParseFloat(field, 64)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				if math.IsNaN(v) {
					c.nans++
					continue
				}
				c.rows = append(c.rows, csvRow{int64(math.Round(at * 1000)), v})
			}
		}
		return lines.Err()
	})
	return columns, err
}

// graphitePrefix maps DIR/host/plugin-instance/type-instance-2026-01-31 to the name that write_graphite uses.
func graphitePrefix(dir, name string) (string, error) {
	rel, err := filepath.Rel(dir, name)
	if err != nil {
		return "", err
	}
	rel = regexp.MustCompile(`-\d{4}-\d{2}-\d{2}$`).ReplaceAllString(rel, "")
	parts := strings.Split(rel, string(filepath.Separator))
	for i := range parts {
		parts[i] = escape(parts[i])
	}
	return strings.Join(parts, "."), nil
}

// escape escapes a part of a name like write_graphite.
func escape(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || unicode.IsSpace(r) || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, s)
}

// compareCollectd compares every column of the CSV files with the server's series, to the 6 decimals of the
// files.
func compareCollectd(server string, columns []*csvColumn, from, to time.Time) (samples int, err error) {
	var diffs []string
	for _, c := range columns {
		got, err := rawSamples(server, selector(c.graphite), from, to)
		if err != nil {
			return 0, err
		}
		stored := got[labelText(map[string]string{"__name__": c.graphite})]
		want := c.seconds(stored)
		maps.DeleteFunc(want, func(sec int64, _ float64) bool { return sec > to.Unix() })
		samples += len(want)
		if d := diffColumn(want, stored, len(got)); d != "" {
			diffs = append(diffs, c.graphite+": "+d)
		}
	}
	return samples, summary(diffs)
}

func diffColumn(want map[int64]float64, got []sample, series int) string {
	if len(want) > 0 && series != 1 {
		return fmt.Sprintf("is %d series instead of 1", series)
	}
	if len(got) != len(want) {
		return fmt.Sprintf("has %d samples instead of %d", len(got), len(want))
	}
	for _, s := range got {
		w, ok := want[s.ms/1000]
		switch {
		case s.ms%1000 != 0 || !ok:
			return fmt.Sprintf("has %v, which the file has not", s)
		case !near(s.value, w):
			return fmt.Sprintf("has %v and the file %f", s, w)
		}
	}
	return ""
}
