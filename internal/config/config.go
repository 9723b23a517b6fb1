package config

import (
	"path/filepath"
	"time"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/bill"
	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/cache/ssd"
	"github.com/shaledb/shale/internal/read/graphite/names"
	"github.com/shaledb/shale/internal/read/graphite/policy"
	"github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/read/results"
	"github.com/shaledb/shale/internal/read/victorialogs"
	"github.com/shaledb/shale/internal/store/compact"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/store/retention"
	"github.com/shaledb/shale/internal/usage"
	"github.com/shaledb/shale/internal/write"
	carbonrules "github.com/shaledb/shale/internal/write/graphite/rules"
	"github.com/shaledb/shale/internal/write/groups"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/replicas"
)

// Config holds every setting. The command line, the environment, the file and the table in docs/operations.md
// are all made from the tags: name, default, min, max, help, and type where the Go type does not say it
// (size, time, count).
type Config struct {
	DataDir string `name:"data-dir" default:"./shale-data" placeholder:"DIR" help:"Folder for all data on this machine. Created if missing; only one process may use it at a time."`
	Bucket  string `name:"bucket" default:"" placeholder:"DIR|URL" help:"Bucket for finished blocks and the catalogue: a folder, or a URL such as s3://NAME/PREFIX?region=REGION, gs://NAME/PREFIX or azblob://NAME/PREFIX?account=ACCOUNT. It must not hold credentials: the parameter credentials-file names a file with them. Empty: the folder 'bucket' in the data folder."`

	Role  string `name:"role" default:"all" placeholder:"ROLE,..." help:"What this process does: all, which needs no other process, or some of gateway, ingest, query and compact, separated by commas. A gateway sends writes to Kafka, and ingest moves them from there to the bucket."`
	Kafka Kafka  `embed:""`
	Roles Roles  `embed:""`

	HTTPListen     string `name:"http-listen" default:"127.0.0.1:9480" placeholder:"HOST:PORT" help:"Address for all HTTP: writes, queries, /metrics, /ready. An address that other machines reach requires auth.tokens."`
	HTTPProfiles   Switch `name:"http-pprof" default:"off" placeholder:"on|off" help:"Serve profiles of the process at /debug/pprof/ of http-listen, for go tool pprof. Every client that reaches the port can take profiles, which slow the process down and show its command line."`
	GraphiteListen string `name:"graphite-listen" default:"127.0.0.1:2003" placeholder:"HOST:PORT" help:"Address for Graphite plaintext, TCP and UDP. Empty: off."`
	// Pickles need their own port, since no mark tells them from lines.
	GraphitePickleListen string `name:"graphite-pickle-listen" default:"127.0.0.1:2004" placeholder:"HOST:PORT" help:"TCP address for Graphite pickles, which carbon relays send. Empty: off."`

	GraphiteCacheListen    string `name:"graphite-cache-query-listen" default:"" placeholder:"HOST:PORT" help:"TCP address for queries of the cache of carbon, which graphite-web sends for points that are not in whisper files yet, such as 127.0.0.1:7002. Empty: off."`
	GraphiteProtobufListen string `name:"graphite-protobuf-listen" default:"" placeholder:"HOST:PORT" help:"TCP address for Graphite points as protobuf messages of carbon, such as 127.0.0.1:2005. Empty: off."`
	GraphiteProxyProtocol  Switch `name:"graphite-proxy-protocol" default:"off" placeholder:"on|off" help:"Take the address of a Graphite sender over TCP from the PROXY protocol (version 1 or 2) that a proxy such as HAProxy speaks. Connections without it are closed."`

	// A client over TLS is known by its certificate; no mark tells it from one without TLS.
	GraphiteTLSListen       string `name:"graphite-tls-listen" default:"" placeholder:"HOST:PORT" help:"TCP address for Graphite plaintext over TLS, such as :2013. Clients must have certificates that auth.tokens gives a tenant and the right to write. Empty: off."`
	GraphitePickleTLSListen string `name:"graphite-pickle-tls-listen" default:"" placeholder:"HOST:PORT" help:"TCP address for Graphite pickles over TLS, such as :2014, as with graphite-tls-listen. Empty: off."`

	Auth Auth `embed:""`
	TLS  TLS  `embed:""`

	TenantsFile string `name:"tenants.file" default:"" placeholder:"FILE" help:"YAML file with limits of tenants: those of each tenant below tenants, and those of all others below defaults. It is read again when it changes, and on SIGHUP. Empty: all tenants have the limits of the settings."`

	Memory Share `name:"memory" default:"50%" placeholder:"SIZE" help:"Memory budget of the process, which sizes every buffer and cache: a size, or a share of the limit of the cgroup (v1 or v2) or else of the machine."`
	Disk   Share `name:"disk" default:"90%" placeholder:"SIZE" help:"Largest size of the data folder: a size, or a share of its file system. Beyond it writes get 503."`

	Retention time.Duration `name:"retention" tenant:"own" type:"time" default:"30d" placeholder:"TIME" help:"How long to keep samples and log lines, by their own timestamps. 0: keep everything."`
	// Series that no rule matches are kept for Retention.
	RetentionRules retention.List `name:"retention-rules" tenant:"own" default:"" placeholder:"RULES" help:"Exceptions from retention: a list of rules such as [{tenant: team-a, signal: logs, match: '{env=\"dev\"}', keep: 3d}]. The first rule that matches a series counts. Fields other than keep may be left out; keep 0 means forever."`

	HA       Switch            `name:"ha.deduplicate" default:"off" placeholder:"on|off" help:"Store one replica of each HA pair of Prometheus servers: of series with the labels ha.cluster-label and ha.replica-label, those of the elected replica only."`
	Replicas replicas.Settings `embed:""`

	// The settings of the rooms, which take them as they are.
	Write    write.Limits  `embed:""`
	Inflight Share         `name:"limits.inflight-bytes" default:"12%" placeholder:"SIZE" help:"Most memory for the bodies of write requests in progress, compressed and decompressed: a size, or a share of the memory budget. Beyond it requests get 503, and Graphite TCP is not read."`
	Head     head.Limits   `embed:""`
	Groups   groups.Limits `embed:""`
	LogLines logs.Limits   `embed:""`

	Connections int `name:"limits.connections" type:"count" default:"1024" placeholder:"N" min:"1" help:"Most open connections of each listener. A further HTTP connection takes the place of one that waits for a request, or waits. A further Graphite connection takes the place of one of the host with the most, or is closed."`

	Query        api.Limits       `embed:""`
	QueryBytes   Share            `name:"query.max-bytes" tenant:"own" default:"25%" placeholder:"SIZE" help:"Most memory of one query: a size, or a share of the memory budget."`
	Features     promql.Features  `name:"query.enable-feature" default:"" placeholder:"NAME,..." help:"Experimental features of PromQL, separated by commas. The names are those of --enable-feature in Prometheus."`
	QueryRollups promql.RollupUse `name:"query.rollups" default:"off" placeholder:"off|asked|always" help:"Whether PromQL may use rollups in place of points: not at all, in queries with the parameter rollups=true, or in all without rollups=false. Unless it is off, rollups also store what PromQL needs. All processes of a cluster need the same value."`
	Bill         bill.Limits      `embed:""`
	// Usage has the prices of the usage report.
	Usage           usage.Prices         `embed:""`
	Policies        policy.Limits        `embed:""`
	GraphiteRollups Switch               `name:"graphite.rollups" default:"on" placeholder:"on|off" help:"Make rollups of the archives of graphite.storage-schemas from the second on, once a day is over: renders read them in place of points, and they stay when retention drops the points."`
	Names           names.Limits         `embed:""`
	Carbon          carbonrules.Settings `embed:""`

	Aggregation Aggregation `embed:""`
	Relay       Relay       `embed:""`
	Agents      Agents      `embed:""`

	Windows head.Windows   `embed:""`
	Compact compact.Limits `embed:""`

	Answers  Switch     `name:"cache.answers" default:"on" placeholder:"on|off" help:"Keep whole responses to queries in memory while nothing changes that they depend on, and let equal queries that run at the same time share one response."`
	SSD      Place      `name:"cache.ssd" default:"" placeholder:"DIR:SIZE" help:"Folder for a cache of pages of the bucket on a local disk, and its size, such as /var/cache/shale:200GiB. It outlives restarts. The folder must not lie in the data folder. Empty: off."`
	CacheSSD ssd.Limits `embed:""`

	Results       results.Limits `embed:""`
	ResultsMemory Share          `name:"cache.result-memory" default:"1.5%" placeholder:"SIZE" help:"Memory for results of queries: a size, or a share of the memory budget. It is taken from the share of pages, at most half of that. 0: no results are kept."`

	Memcached Memcached `embed:""`

	VictoriaLogs victorialogs.Settings `embed:""`

	Requests Requests `embed:""`

	Lines Lines `embed:""`
	Log   Log   `embed:""`

	// MemoryBytes and DiskBytes are shares in bytes. Resolve sets them, Write.MaxInflightBytes, Query.MaxBytes
	// and Results.MaxBytes.
	MemoryBytes int64 `kong:"-"`
	DiskBytes   int64 `kong:"-"`

	// Version and Commit identify the program to its clients. They are not settings. An unknown Commit is
	// empty.
	Version string `kong:"-"`
	Commit  string `kong:"-"`
}

// Auth defines which requests are let through.
type Auth struct {
	Tokens string `name:"auth.tokens" default:"" placeholder:"FILE" help:"YAML file with the tokens that HTTP requests must carry, by their SHA-256, as 'shale token new' prints them, and with the clients that are known by certificates. It is read again when it changes, and on SIGHUP. Empty: no token is required."`
	Audit  string `name:"auth.audit-file" default:"" placeholder:"FILE" help:"File that deletions and actions of administration are appended to, with the names of their clients, as lines of JSON. Empty: they go to Shale's own log, at the level info."`
	Anyone Switch `name:"auth.let-anyone-read-write-and-delete" default:"off" placeholder:"on|off" help:"Start although a listener that other machines reach requires no authentication: anyone who reaches it may do what its protocol allows. Graphite's protocols have no authentication without TLS."`
}

// TLS defines how listeners encrypt, and which certificates clients need.
type TLS struct {
	Cert        string      `name:"tls.cert-file" default:"" placeholder:"FILE" help:"PEM file with the certificate of this server, followed by those that lead to its authority. With it, http-listen speaks HTTPS only. The files of tls.* are read again when they change, and on SIGHUP. Empty: HTTP without TLS."`
	Key         string      `name:"tls.key-file" default:"" placeholder:"FILE" help:"PEM file with the private key of tls.cert-file."`
	MinVersion  TLSVersion  `name:"tls.min-version" default:"1.2" placeholder:"1.2|1.3" help:"Lowest version of TLS that clients may use: 1.2 or 1.3."`
	ClientCA    string      `name:"tls.client-ca-file" default:"" placeholder:"FILE" help:"PEM file with the authorities that sign certificates of clients. Empty: clients are not asked for certificates."`
	ClientCerts ClientCerts `name:"tls.client-certs" default:"request" placeholder:"request|require" help:"Whether clients of http-listen must have a certificate: request (one without a certificate needs a token) or require (the handshake fails without one, also of health checks). Any certificate that is sent must be valid."`
}

// Aggregation defines how graphite.aggregation-rules are carried out. The defaults are those of carbon.
type Aggregation struct {
	ForwardAll Switch        `name:"graphite.forward-all" default:"on" placeholder:"on|off" help:"Store Graphite points themselves, too, where graphite.aggregation-rules is set, as FORWARD_ALL of carbon. Off: only aggregates are stored."`
	Intervals  int           `name:"graphite.max-aggregation-intervals" type:"count" default:"5" placeholder:"N" min:"0" max:"1000" help:"How many past intervals an aggregate of Graphite points keeps for late points, as MAX_AGGREGATION_INTERVALS of carbon."`
	WriteBack  time.Duration `name:"graphite.write-back-frequency" type:"time" default:"0" placeholder:"TIME" max:"1d" help:"How often aggregates of Graphite points are computed, if that is more often than their rule says, as WRITE_BACK_FREQUENCY of carbon. It is cut to whole seconds. 0: as often as the rule says."`
}

// Relay defines how points are sent to the carbons that graphite.relay names.
type Relay struct {
	Store Switch `name:"graphite.relay-store" default:"on" placeholder:"on|off" help:"Store Graphite points themselves, too, where graphite.relay is set. Off: they are only sent to other carbons."`
	Queue int64  `name:"graphite.relay-queue" type:"size" default:"1GiB" placeholder:"SIZE" min:"4MiB" help:"Most disk for the points that wait for one of the carbons that graphite.relay names. When it is full, further points for that carbon are dropped and counted."`
	Cert  string `name:"graphite.relay-tls-cert-file" default:"" placeholder:"FILE" help:"PEM file with the certificate for the carbons that graphite.relay names, if carbon.conf has DESTINATION_TRANSPORT = ssl and they ask for one. It is read for each connection. Empty: none."`
	Key   string `name:"graphite.relay-tls-key-file" default:"" placeholder:"FILE" help:"PEM file with the private key of graphite.relay-tls-cert-file."`
}

// Agents defines the series that carbon has about itself.
type Agents struct {
	Interval time.Duration `name:"graphite.carbon-metric-interval" type:"time" default:"0" placeholder:"TIME" min:"0" max:"1h" help:"How often to store series such as carbon.agents.HOST.metricsReceived about this process, under the names that carbon has for them, as CARBON_METRIC_INTERVAL of carbon, where it is 60s. 0: never."`
	Prefix   string        `name:"graphite.carbon-metric-prefix" default:"carbon" placeholder:"NAME" help:"The beginning of the names of the series of graphite.carbon-metric-interval, as CARBON_METRIC_PREFIX of carbon."`
}

// Requests define how requests are sent to the bucket.
type Requests struct {
	Gap        int64  `name:"bucket-requests.coalesce-gap" type:"size" default:"512KiB" placeholder:"SIZE" min:"0" max:"4MiB" help:"Most unneeded bytes between two reads of one object that are made one request to the bucket. 0: only adjacent reads are joined, and only within a query."`
	Hedge      Switch `name:"bucket-requests.hedge" default:"on" placeholder:"on|off" help:"Send a read of a query to the bucket a second time if it takes longer than 95 % of reads of its size, for at most 3 % of them. The first response counts."`
	Concurrent int    `name:"bucket-requests.max-concurrent" type:"count" default:"256" placeholder:"N" min:"1" help:"Most requests to the bucket at one time. The limit that applies is lower while the bucket responds slowly."`
	PerSecond  int    `name:"bucket-requests.max-per-second" type:"count" default:"0" placeholder:"N" min:"0" help:"Most requests to the bucket per second. 0: as many as the store takes; Shale lowers the rate whenever the store throttles."`
}

// Lines define additions to received log lines.
type Lines struct {
	ServiceName  Switch `name:"lines.service-name" default:"on" placeholder:"on|off" help:"Add the label service_name to streams that lack it: the value of the first label that names an application, or unknown_service."`
	DetectLevels Switch `name:"lines.detected-level" default:"on" placeholder:"on|off" help:"Add the structured metadata detected_level to each line, from a label, from its metadata, or from its text."`
}

// Log defines the level and the format of Shale's own log.
type Log struct {
	Level  Level  `name:"log.level" default:"info" placeholder:"LEVEL" help:"Least severe level to log: debug, info, warn or error."`
	Format Format `name:"log.format" default:"text" placeholder:"FORMAT" help:"Format of Shale's own log on standard error: text (key=value) or json."`
}

// BucketLocation returns where the bucket is. Folders are absolute.
func (c *Config) BucketLocation() (location.Location, error) {
	text := c.Bucket
	if text == "" {
		text = filepath.Join(c.DataDir, "bucket")
	}
	l, err := location.Parse(text)
	if err == nil && l.Kind == location.Folder {
		l.Dir, err = filepath.Abs(l.Dir)
	}
	return l, err
}

// OldestAge returns the age beyond which samples are refused, 0 if every age is accepted, and the setting
// that it is the value of. Samples that retention would drop at once are refused too.
func (c *Config) OldestAge() (age time.Duration, setting string) {
	keep, oldest := c.Retention, c.Write.MaxAge
	// Load has checked the rules.
	if rules, err := retention.Compile(c.RetentionRules, c.Retention); err == nil && keep != 0 {
		if keep = rules.Longest(); keep == retention.Forever {
			keep = 0
		}
	}
	if keep != 0 && (oldest == 0 || keep < oldest) {
		return keep, "retention"
	}
	return oldest, ""
}
