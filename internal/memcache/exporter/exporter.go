package exporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/shaledb/shale/internal/memcache/advise"
	"github.com/shaledb/shale/internal/memcache/stats"
)

// Exporter is a [prometheus.Collector] of a server.
type Exporter struct {
	// Addr is the server, and Timeout bounds each of its responses.
	Addr    string
	Timeout time.Duration
	// Labels are added to each metric.
	Labels prometheus.Labels
	// Failed, if set, is told why a server is not up.
	Failed func(error)
}

// Describe is [prometheus.Collector]: what there is depends on the server.
func (e *Exporter) Describe(chan<- *prometheus.Desc) {}

// Collect is [prometheus.Collector].
func (e *Exporter) Collect(out chan<- prometheus.Metric) {
	c := &collection{e: e, out: out}
	up := 1.0
	if err := c.collect(); err != nil {
		up = 0
		if e.Failed != nil {
			e.Failed(err)
		}
	}
	c.send("up", "1: the server was asked.", false, up, nil)
}

// collection is one round of questions.
type collection struct {
	e   *Exporter
	out chan<- prometheus.Metric
}

func (c *collection) send(name, help string, isCounter bool, value float64, labels []string, values ...string) {
	kind := prometheus.GaugeValue
	if isCounter {
		kind = prometheus.CounterValue
	}
	desc := prometheus.NewDesc("memcached_"+name, help, labels, c.e.Labels)
	c.out <- prometheus.MustNewConstMetric(desc, kind, value, values...)
}

// table sends those of its metrics that a server has.
func (c *collection) table(table []stat, from map[string]string, labels []string, values ...string) {
	for _, s := range table {
		text, ok := from[s.from]
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		switch text {
		case "yes":
			v, err = 1, nil
		case "no":
			v, err = 0, nil
		}
		if err == nil {
			c.send(s.name, s.help, s.counter, v, labels, values...)
		}
	}
}

func (c *collection) collect() error {
	conn, err := stats.Dial(context.Background(), c.e.Addr, c.e.Timeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	begun := time.Now()
	if _, err := conn.Version(); err != nil {
		return err
	}
	c.send("probe_seconds", "Time of a request that needs no item.", false, time.Since(begun).Seconds(), nil)
	a, err := advise.AskAll(conn)
	if err != nil {
		return err
	}
	s := append(a.General, a.Slabs...).Map() // total_malloced is one of slabs
	c.send("version", "The version of the server.", false, 1, []string{"version"}, s["version"])
	c.table(general, s, nil)
	c.table(more, s, nil)
	c.table(ofSettings, a.Settings.Map(), nil)
	if v, err := strconv.ParseFloat(s["time_in_listen_disabled_us"], 64); err == nil {
		c.send("listener_disabled_seconds_total", "Time without new connections, at the limit.", true, v/1e6, nil)
	}
	for _, cpu := range []string{"user", "system"} {
		if v, err := strconv.ParseFloat(s["rusage_"+cpu], 64); err == nil {
			c.send("process_"+cpu+"_cpu_seconds_total", "CPU time of the server.", true, v, nil)
		}
	}
	c.commands("commands_total", s, nil)
	c.classes(a)
	c.waste(a)
	if _, ok := s["extstore_limit_maxbytes"]; ok {
		return c.pages(conn)
	}
	return nil
}

// commands sends counters of commands by their outcome. memcached counts cas in cmd_set too.
func (c *collection) commands(name string, s map[string]string, slab []string) {
	labels := []string{"command", "status"}
	if slab != nil {
		labels = []string{"slab", "command", "status"}
	}
	const help = "Commands by outcome."
	one := func(stat, command, status string) float64 {
		v, err := strconv.ParseFloat(s[stat], 64)
		if err == nil && command != "" {
			c.send(name, help, true, v, labels, append(slab[:len(slab):len(slab)], command, status)...)
		}
		return v
	}
	for _, command := range []string{"get", "delete", "incr", "decr", "cas", "touch"} {
		one(command+"_hits", command, "hit")
		one(command+"_misses", command, "miss")
	}
	one("cas_badval", "cas", "badval")
	one("cmd_flush", "flush", "hit")
	if _, ok := s["cmd_set"]; ok {
		sets := one("cmd_set", "", "") - one("cas_hits", "", "") - one("cas_badval", "", "")
		if slab == nil {
			sets -= one("cas_misses", "", "")
		}
		c.send(name, help, true, sets, labels, append(slab[:len(slab):len(slab)], "set", "hit")...)
	}
}

// classes sends metrics of slab classes.
func (c *collection) classes(a advise.Answers) {
	items, slabs := map[string]map[string]string{}, map[string]map[string]string{}
	group := func(into map[string]map[string]string, s stats.Stat, name string) {
		if id, stat, ok := strings.Cut(name, ":"); ok {
			if into[id] == nil {
				into[id] = map[string]string{}
			}
			into[id][stat] = s.Value
		}
	}
	for _, s := range a.Items {
		if name, ok := strings.CutPrefix(s.Name, "items:"); ok {
			group(items, s, name)
		}
	}
	for _, s := range a.Slabs {
		group(slabs, s, s.Name)
	}
	label := []string{"slab"}
	for id, s := range items {
		c.table(ofItems, s, label, id)
		for list, name := range map[string]string{"hot": "hits_to_hot", "warm": "hits_to_warm", "cold": "hits_to_cold", "temporary": "hits_to_temp"} {
			if v, err := strconv.ParseFloat(s[name], 64); err == nil {
				c.send("slab_lru_hits_total", "Hits by list.", true, v, []string{"slab", "lru"}, id, list)
			}
		}
	}
	for id, s := range slabs {
		c.table(ofSlabs, s, label, id)
		c.commands("slab_commands_total", s, []string{id})
	}
}

// waste sends where the memory goes.
func (c *collection) waste(a advise.Answers) {
	s, err := advise.Known(c.e.Addr, a)
	if err != nil {
		return // a server with settings that are not known
	}
	w := s.Waste()
	for cause, bytes := range map[string]int64{"chunks": w.InChunks, "page_ends": w.PageEnds, "last_pages": w.LastPages, "held": w.Held, "unassigned": w.Unassigned} {
		c.send("waste_bytes", "Memory that holds no item, by cause.", false, float64(bytes), []string{"cause"}, cause)
	}
	if used := w.Items + w.InChunks + w.PageEnds + w.LastPages + w.Held; used > 0 {
		c.send("waste_ratio", "Share of slab pages that holds no item.", false, 1-float64(w.Items)/float64(used), nil)
	}
}

// pages sends what each bucket of extstore has. Single pages may be 65,534, too many for labels.
func (c *collection) pages(conn *stats.Conn) error {
	all, err := conn.Ask("extstore")
	if errors.Is(err, stats.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	bucket, bytes := map[string]string{}, map[string]float64{}
	for _, s := range all {
		page, name, _ := strings.Cut(s.Name, ":")
		switch v, err := strconv.ParseFloat(s.Value, 64); {
		case err != nil:
		case name == "bucket":
			bucket[page] = s.Value
		case name == "bytes":
			bytes[page] = v
		}
	}
	pages, sum := map[string]float64{}, map[string]float64{}
	for page, b := range bucket {
		pages[b]++
		sum[b] += bytes[page]
	}
	for b, n := range pages {
		c.send("extstore_bucket_pages", "Pages of a bucket.", false, n, []string{"bucket"}, b)
		c.send("extstore_bucket_bytes", "Bytes of a bucket.", false, sum[b], []string{"bucket"}, b)
	}
	return nil
}

// Command has the flags of `shale memcached exporter`.
type Command struct {
	Addr    []string      `arg:"" help:"Servers as HOST:PORT or a path of a socket. Of several, metrics have the label server."`
	Listen  string        `default:"127.0.0.1:9150" placeholder:"HOST:PORT" help:"Address for Prometheus."`
	Timeout time.Duration `default:"1s" placeholder:"TIME" help:"How long a server may take for a line of its response."`
}

// Help teaches the command by examples.
func (*Command) Help() string {
	return `Serve metrics of a server on http://127.0.0.1:9150/metrics:

    shale memcached exporter 10.0.0.5:11211

Metrics of memcached_exporter have its names. docs/memcached.md lists the others.`
}

// Run serves until the context ends.
func (c *Command) Run(ctx context.Context, stdout io.Writer) error {
	registry := prometheus.NewRegistry()
	var mu sync.Mutex
	for _, addr := range c.Addr {
		e := &Exporter{Addr: stats.Address(addr), Timeout: c.Timeout, Failed: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			_, _ = fmt.Fprintln(stdout, err) // the metric up says so too
		}}
		if len(c.Addr) > 1 {
			e.Labels = prometheus.Labels{"server": e.Addr}
		}
		if err := registry.Register(e); err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // it only served readers
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
