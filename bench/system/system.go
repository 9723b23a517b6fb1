package system

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// Kind is a kind of server.
type Kind uint8

// The kinds.
const (
	Shale Kind = iota
	VictoriaMetrics
	Prometheus
	Loki
	VictoriaLogs
)

// System is a server that can be started.
type System struct {
	// Name is the name in results: shale, base, victoriametrics, prometheus, loki, victorialogs.
	Name    string
	Kind    Kind
	Binary  string
	Version string // as the binary says
	// Flags are added to those that the benchmark gives.
	Flags []string
}

// New checks a binary and reads its version.
func New(ctx context.Context, name string, kind Kind, binary string, flags []string) (System, error) {
	s := System{Name: name, Kind: kind, Binary: binary, Flags: flags}
	info, err := os.Stat(binary)
	switch {
	case err != nil:
		return s, fmt.Errorf("%s: %w; give the path of its binary", name, err)
	case info.IsDir() || info.Mode()&0o111 == 0:
		return s, fmt.Errorf("%s: %s is not an executable file; give the path of its binary", name, binary)
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	args := []string{"--version"}
	if kind == Shale {
		args = []string{"version"}
	}
	out, err := exec.CommandContext(ctx, binary, args...).CombinedOutput()
	if err != nil {
		return s, fmt.Errorf("%s: %s %s: %w: %.200s", name, binary, args[0], err, out)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if s.Version = shorten(line); kind == Loki || kind == VictoriaLogs {
		s.Version = builtFrom(binary, s.Version)
	}
	return s, nil
}

// builtFrom returns the version of a binary that was built without a version: that of its module.
func builtFrom(binary, said string) string {
	if strings.ContainsAny(said, "0123456789") && !strings.Contains(said, "ERROR") {
		return said
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return said
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path != "" && (info.Path == m.Path || strings.HasPrefix(info.Path, m.Path+"/")) {
			return filepath.Base(info.Path) + " " + m.Version
		}
	}
	return said
}

// shorten returns the name and the version in the version text of a binary.
func shorten(line string) string {
	line, _, _ = strings.Cut(line, " (")
	f := strings.Fields(line)
	for i, word := range f {
		if word == "version" && i+1 < len(f) {
			return f[0] + " " + strings.TrimRight(f[i+1], ",")
		}
	}
	return strings.Join(f[:min(len(f), 3)], " ")
}

// Speaks reports whether a server supports a protocol: graphite, v1, v2 or logs.
func (s *System) Speaks(protocol string) bool {
	logs := s.Kind == Loki || s.Kind == VictoriaLogs
	switch protocol {
	case "logs":
		return logs || s.Kind == Shale
	}
	if logs {
		return false
	}
	switch protocol {
	case "graphite":
		return s.Kind != Prometheus
	case "v2":
		return s.Kind != VictoriaMetrics
	}
	return true
}

// Options are the settings of one start.
type Options struct {
	// Dir is for the data and the log.
	Dir string
	// Memory is the budget, as 1GiB, for those that have one; empty: the default.
	Memory string
	// Config is added to the file of Prometheus' settings; ADDRESS in it stands for the server's own.
	Config string
}

// arguments returns the command line.
func (s *System) arguments(o Options, http, graphite string) []string {
	var args []string
	switch s.Kind {
	case Shale:
		// Loads have stamps of past days, and run ahead of the clock. Other servers have no limits on queries
		// either.
		args = []string{"serve", "--data-dir", o.Dir, "--http-listen", http, "--graphite-listen", graphite, "--graphite-pickle-listen", "", "--max-age", "0", "--retention", "0", "--max-future", "1d",
			"--query.max-samples", "0", "--query.max-series", "0"}
		if o.Memory != "" {
			args = append(args, "--memory", o.Memory)
		}
	case VictoriaMetrics:
		args = []string{
			"-storageDataPath", o.Dir, "-retentionPeriod=100y", "-httpListenAddr", http, "-graphiteListenAddr", graphite,
			// The limits are lifted; all else is the default.
			"-search.maxUniqueTimeseries=30000000", "-search.maxSeries=30000000", "-search.maxQueryDuration=2m",
			"-search.maxLabelsAPISeries=30000000", "-search.maxTagValues=30000000", "-search.maxLabelsAPIDuration=2m",
			// A result cache would answer all but the first run of a query.
			"-search.disableCache",
		}
	case Prometheus:
		args = []string{
			"--config.file", o.Dir + "/prometheus.yml", "--storage.tsdb.path", o.Dir + "/data", "--web.listen-address", http,
			"--web.enable-remote-write-receiver", "--web.enable-admin-api", "--storage.tsdb.retention.time", "100y",
			"--query.max-samples", "200000000", "--log.level", "warn",
		}
	case Loki:
		args = []string{"-target=all", "-config.file=" + o.Dir + "/loki.yaml"}
	case VictoriaLogs:
		args = []string{
			"-storageDataPath", o.Dir + "/data", "-httpListenAddr", http, "-retentionPeriod=100y", "-search.maxQueryDuration=2m",
		}
	}
	return append(args, s.Flags...)
}

// ready returns the path that responds with 200 once the server is ready.
func (s *System) ready() string {
	switch s.Kind {
	case Shale, Loki:
		return "/ready"
	case Prometheus:
		return "/-/ready"
	}
	return "/health"
}

// Received names a server's counter of Graphite points.
func (s *System) received() (name, label string) {
	if s.Kind == VictoriaMetrics {
		return "vm_rows_inserted_total", `type="graphite"`
	}
	return "shale_graphite_received_points_total", ""
}

// Samples names a server's counter of samples received by remote write, or by scraping.
func (s *System) Samples() (name, label string) {
	switch s.Kind {
	case VictoriaMetrics:
		return "vm_rows_inserted_total", `type="promremotewrite"`
	case Prometheus:
		return "prometheus_tsdb_head_samples_appended_total", ""
	}
	return "shale_promwrite_received_samples_total", ""
}

// prepare writes the files that a server needs.
func (s *System) prepare(o Options, http, second string) error {
	switch s.Kind {
	case Prometheus:
		const config = "storage:\n  tsdb:\n    out_of_order_time_window: 40d\n"
		return os.WriteFile(o.Dir+"/prometheus.yml", []byte(config+strings.ReplaceAll(o.Config, "ADDRESS", http)), 0o600)
	case Loki:
		config, err := lokiConfig(o.Dir, http, second)
		if err != nil {
			return err
		}
		return os.WriteFile(o.Dir+"/loki.yaml", []byte(config), 0o600)
	}
	return nil
}
