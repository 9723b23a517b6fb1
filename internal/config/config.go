package config

import "path/filepath"

// Config holds every setting. The tags are the settings' names, defaults and docs: the command line, the environment,
// the file and the table in docs/operations.md are all made from them.
type Config struct {
	DataDir string `name:"data-dir" default:"./shale-data" placeholder:"DIR" help:"Folder for everything that Shale keeps on this machine. Created if absent; one process at a time."`
	Bucket  string `name:"bucket" default:"" placeholder:"DIR" help:"Folder that serves as the bucket: finished blocks and the catalogue. Empty: the folder 'bucket' inside the data folder."`

	HTTPListen     string `name:"http-listen" default:"127.0.0.1:9480" placeholder:"HOST:PORT" help:"Address of the one port for all HTTP: remote write, queries, /metrics, /ready. It asks for no password: open it to trusted networks only."`
	GraphiteListen string `name:"graphite-listen" default:"127.0.0.1:2003" placeholder:"HOST:PORT" help:"Address for Graphite plaintext, TCP and UDP. Empty: off."`
	// Pickles have a port of their own, since they have no mark by which they could be told from lines.
	GraphitePickleListen string `name:"graphite-pickle-listen" default:"127.0.0.1:2004" placeholder:"HOST:PORT" help:"Address for Graphite pickles, which carbon relays send, TCP. Empty: off."`

	Memory Share `name:"memory" default:"50%" placeholder:"SIZE" help:"Memory budget of the process, by which every buffer and cache is sized: a size, or a share of what the cgroup (v1 or v2) or else the machine allows."`
	Disk   Share `name:"disk" default:"90%" placeholder:"SIZE" help:"Most bytes that the data folder may hold: a size or a share of its file system. Beyond it writes are answered with 503."`

	Retention Duration `name:"retention" default:"30d" placeholder:"TIME" help:"How long samples are kept, by their own time. 0: for ever."`
	MaxAge    Duration `name:"max-age" default:"7d" placeholder:"TIME" help:"Samples older than this are refused and counted. 0: any age is taken."`
	MaxFuture Duration `name:"max-future" default:"10m" placeholder:"TIME" help:"Samples further than this ahead of the clock are refused and counted."`

	Limits Limits `embed:"" prefix:"limits." name:"limits"`
	Query  Query  `embed:"" prefix:"query." name:"query"`
	Store  Store  `embed:"" prefix:"store." name:"store"`
	Lines  Lines  `embed:"" prefix:"lines." name:"lines"`
	Log    Log    `embed:"" prefix:"log." name:"log"`

	// MemoryBytes, DiskBytes, InflightBytes (of limits.inflight-bytes) and QueryBytes (of query.max-bytes) are the shares in
	// bytes. Resolve sets them.
	MemoryBytes   int64 `kong:"-"`
	DiskBytes     int64 `kong:"-"`
	InflightBytes int64 `kong:"-"`
	QueryBytes    int64 `kong:"-"`

	// Version and Commit are the program's, which it tells its clients. They are no settings. Commit is empty if it is
	// not known.
	Version string `kong:"-"`
	Commit  string `kong:"-"`
}

// Limits bound what senders may cost.
type Limits struct {
	Inflight     Share `name:"inflight-bytes" default:"12%" placeholder:"SIZE" help:"Bytes that all write requests being worked on may hold, as sent and as decoded: a size or a share of the memory budget. Beyond it: 503, and Graphite TCP is not read."`
	BodyBytes    Size  `name:"body-bytes" default:"32MiB" placeholder:"SIZE" help:"Largest body of one HTTP request, as sent."`
	DecodedBytes Size  `name:"decoded-bytes" default:"128MiB" placeholder:"SIZE" help:"Largest body of one HTTP request after decompression."`
	Labels       int   `name:"labels" default:"64" placeholder:"N" help:"Most labels of one series."`
	NameBytes    Size  `name:"label-name-bytes" default:"1KiB" placeholder:"SIZE" help:"Longest label name."`
	ValueBytes   Size  `name:"label-value-bytes" default:"4KiB" placeholder:"SIZE" help:"Longest label value; a Graphite path is one."`
	Buckets      int   `name:"histogram-buckets" default:"4096" placeholder:"N" help:"Most buckets of one native histogram on either side of zero."`
	NewSeries    int64 `name:"new-series" default:"0" placeholder:"N" help:"Most series a second that all tenants together may create, with a burst of as many as a minute allows. Known series are not held back. 0: as many as the disk takes."`
	TenantNew    int64 `name:"tenant-new-series" default:"0" placeholder:"N" help:"The same for each tenant."`
	Families     int   `name:"metadata-families" default:"10000" placeholder:"N" help:"Most metric families of one tenant whose type, help and unit are kept."`
	FamilyBytes  Size  `name:"metadata-tenant-bytes" default:"4MiB" placeholder:"SIZE" help:"Most bytes of these texts of one tenant."`
	AboutBytes   Size  `name:"metadata-bytes" default:"16MiB" placeholder:"SIZE" help:"Most bytes of these texts of all tenants."`
	LineBytes    Size  `name:"line-bytes" default:"256KiB" placeholder:"SIZE" help:"Longest log line."`
	MetaBytes    Size  `name:"line-metadata-bytes" default:"64KiB" placeholder:"SIZE" help:"Most bytes of the structured metadata of one log line: names and values."`
	MetaEntries  int   `name:"line-metadata-entries" default:"128" placeholder:"N" help:"Most entries of the structured metadata of one log line."`
	TenantLines  int64 `name:"tenant-lines" default:"0" placeholder:"N" help:"Most log lines a second of each tenant, with a burst of as many as ten seconds allow. 0: no limit."`
	TenantText   Size  `name:"tenant-line-bytes" default:"0" placeholder:"SIZE" help:"Most bytes of log lines a second of each tenant, with a burst of as many as ten seconds allow. 0: no limit."`
	Tenants      int   `name:"tenants" default:"10000" placeholder:"N" help:"Most tenants. Writes of further ones are refused."`
	Connections  int   `name:"connections" default:"1024" placeholder:"N" help:"Most connections that each listener keeps open at one time; further ones wait (HTTP) or are closed (Graphite)."`
}

// Query bounds what one query, and all queries together, may cost.
type Query struct {
	Timeout     Duration `name:"timeout" default:"2m" placeholder:"TIME" help:"Longest run of one query."`
	Concurrency int      `name:"max-concurrent" default:"16" placeholder:"N" help:"Queries that run at one time; further ones wait."`
	MaxSeries   int64    `name:"max-series" default:"2000000" placeholder:"N" help:"Most series that one query may select. 0: no limit."`
	MaxSamples  int64    `name:"max-samples" default:"50000000" placeholder:"N" help:"Most samples that one query may read or hold. 0: no limit."`
	MaxLines    int      `name:"max-lines" default:"5000" placeholder:"N" help:"Most log lines that one query may ask for."`
	MaxBytes    Share    `name:"max-bytes" default:"25%" placeholder:"SIZE" help:"Most memory that one query may hold: a size or a share of the memory budget."`
}

// Store says how samples become blocks in the bucket.
type Store struct {
	Window      Duration `name:"window" default:"2h" placeholder:"TIME" help:"Span of sample time of one block; a day must be a multiple of it. Shorter ones are in the bucket earlier, and are more blocks until their day is compacted."`
	Grace       Duration `name:"grace" default:"10m" placeholder:"TIME" help:"How long after its end a window takes samples before its block is made."`
	LateAge     Duration `name:"late-age" default:"1h" placeholder:"TIME" help:"Age at which samples that came after the block of their window are made a block of their own."`
	CompactRate Size     `name:"compact-bytes-per-second" default:"0" placeholder:"SIZE" help:"Most bytes a second that compaction reads and writes. 0: no limit."`
}

// Lines says what is added to log lines that are received.
type Lines struct {
	ServiceName   Switch `name:"service-name" default:"on" placeholder:"on|off" help:"Give streams without the label service_name one, of the first label that names an application, or unknown_service."`
	DetectedLevel Switch `name:"detected-level" default:"on" placeholder:"on|off" help:"Give lines the structured metadata detected_level, of a label, of metadata, or of the line."`
}

// Log says what is logged, and how.
type Log struct {
	Level  Level  `name:"level" default:"info" placeholder:"LEVEL" help:"Least severe level that is logged: debug, info, warn or error."`
	Format Format `name:"format" default:"text" placeholder:"FORMAT" help:"Form of log lines on standard error: text (key=value) or json."`
}

// BucketDir returns the folder of the bucket.
func (c *Config) BucketDir() string {
	if c.Bucket != "" {
		return c.Bucket
	}
	return filepath.Join(c.DataDir, "bucket")
}

// OldestAge returns the age from which on samples are refused, 0 if none is: what retention would drop at once is not
// taken either.
func (c *Config) OldestAge() Duration {
	if c.Retention != 0 && (c.MaxAge == 0 || c.Retention < c.MaxAge) {
		return c.Retention
	}
	return c.MaxAge
}
