package config

import (
	"path/filepath"
	"time"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/store/compact"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
)

// Config holds every setting. The command line, the environment, the file and the table in docs/operations.md
// are all made from the tags: name, default, min, max, help, and type where the Go type does not say it (size,
// time, count).
type Config struct {
	DataDir string `name:"data-dir" default:"./shale-data" placeholder:"DIR" help:"Folder for everything that Shale keeps on this machine. Created if absent; one process at a time."`
	Bucket  string `name:"bucket" default:"" placeholder:"DIR" help:"Folder that serves as the bucket: finished blocks and the catalogue. Empty: the folder 'bucket' inside the data folder."`

	HTTPListen     string `name:"http-listen" default:"127.0.0.1:9480" placeholder:"HOST:PORT" help:"Address of the one port for all HTTP: remote write, queries, /metrics, /ready. It asks for no password: open it to trusted networks only."`
	GraphiteListen string `name:"graphite-listen" default:"127.0.0.1:2003" placeholder:"HOST:PORT" help:"Address for Graphite plaintext, TCP and UDP. Empty: off."`
	// Pickles need a port of their own: nothing in them tells them from lines.
	GraphitePickleListen string `name:"graphite-pickle-listen" default:"127.0.0.1:2004" placeholder:"HOST:PORT" help:"Address for Graphite pickles, which carbon relays send, TCP. Empty: off."`

	Memory Share `name:"memory" default:"50%" placeholder:"SIZE" help:"Memory budget of the process, by which every buffer and cache is sized: a size, or a share of what the cgroup (v1 or v2) or else the machine allows."`
	Disk   Share `name:"disk" default:"90%" placeholder:"SIZE" help:"Most bytes that the data folder may hold: a size or a share of its file system. Beyond it writes are answered with 503."`

	Retention time.Duration `name:"retention" type:"time" default:"30d" placeholder:"TIME" help:"How long samples are kept, by their own time. 0: for ever."`

	// The settings of the rooms, which take them as they are.
	Write    write.Limits `embed:""`
	Inflight Share        `name:"limits.inflight-bytes" default:"12%" placeholder:"SIZE" help:"Bytes that all write requests being worked on may hold, as sent and as decoded: a size or a share of the memory budget. Beyond it: 503, and Graphite TCP is not read."`
	Head     head.Limits  `embed:""`
	LogLines logs.Limits  `embed:""`

	Connections int `name:"limits.connections" type:"count" default:"1024" placeholder:"N" min:"1" help:"Most connections that each listener keeps open at one time; further ones wait (HTTP) or are closed (Graphite)."`

	Query      api.Limits `embed:""`
	QueryBytes Share      `name:"query.max-bytes" default:"25%" placeholder:"SIZE" help:"Most memory that one query may hold: a size or a share of the memory budget."`

	Windows head.Windows   `embed:""`
	Compact compact.Limits `embed:""`

	Lines Lines `embed:""`
	Log   Log   `embed:""`

	// MemoryBytes and DiskBytes are shares in bytes. Resolve sets them, Write.MaxInflightBytes and
	// Query.MaxBytes.
	MemoryBytes int64 `kong:"-"`
	DiskBytes   int64 `kong:"-"`

	// Version and Commit identify the program to its clients. They are not settings. An unknown Commit is empty.
	Version string `kong:"-"`
	Commit  string `kong:"-"`
}

// Lines says what is added to log lines that are received.
type Lines struct {
	ServiceName  Switch `name:"lines.service-name" default:"on" placeholder:"on|off" help:"Give streams without the label service_name one, of the first label that names an application, or unknown_service."`
	DetectLevels Switch `name:"lines.detected-level" default:"on" placeholder:"on|off" help:"Give lines the structured metadata detected_level, of a label, of metadata, or of the line."`
}

// Log says what is logged, and how.
type Log struct {
	Level  Level  `name:"log.level" default:"info" placeholder:"LEVEL" help:"Least severe level that is logged: debug, info, warn or error."`
	Format Format `name:"log.format" default:"text" placeholder:"FORMAT" help:"Form of log lines on standard error: text (key=value) or json."`
}

// BucketDir returns the folder of the bucket.
func (c *Config) BucketDir() string {
	if c.Bucket != "" {
		return c.Bucket
	}
	return filepath.Join(c.DataDir, "bucket")
}

// OldestAge returns the age beyond which samples are refused, 0 if every age is accepted. Samples that
// retention would drop at once are refused too.
func (c *Config) OldestAge() time.Duration {
	keep, oldest := c.Retention, c.Write.MaxAge
	if keep != 0 && (oldest == 0 || keep < oldest) {
		return keep
	}
	return oldest
}
