package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/app"
	"github.com/shaledb/shale/internal/config"
)

type serveCmd struct {
	ConfigFile  string `name:"config" short:"c" placeholder:"FILE" help:"YAML file with settings."`
	PrintConfig bool   `help:"Print the effective settings with their sources, and exit."`
	Explain     bool   `help:"Print what the memory budget is divided into and which series, rates, queries and caches this machine will hold, and exit."`

	config.Config `embed:""`
}

// Help teaches the command by examples.
func (*serveCmd) Help() string {
	return `Without flags, Shale listens on this machine only and keeps everything in ./shale-data:

    shale serve

Run as a service on all interfaces, for clients with tokens, with half a year of data:

    shale serve --data-dir /var/lib/shale --http-listen :9480 --auth.tokens tokens.yaml --memory 4GiB --retention 180d

Every flag is also an environment variable and a key of the file given by --config or SHALE_CONFIG.
These are equal: --query.timeout 30s, SHALE_QUERY_TIMEOUT=30s, and

    query:
      timeout: 30s

Flags override the environment, which overrides the file, which overrides the defaults. Write sizes as 512MiB or 2GiB,
shares as 50%, times as 30d or 1h30m. The first SIGTERM or Ctrl-C stops the server gracefully, the second at once.`
}

// Run serves until the context ends.
func (s *serveCmd) Run(ctx context.Context, p *process) error {
	c, origins, err := s.load(p)
	if err != nil {
		return usageError{err}
	}
	if s.PrintConfig {
		_, err := io.WriteString(p.stdout, c.YAML(origins))
		return err
	}
	if c.Kafka.Brokers != "" && c.Has(config.RoleAll) {
		return usageError{errors.New("kafka.brokers is set, but the role all keeps its journal on its own disk: no write would go to Kafka; set role, or leave kafka.brokers out")}
	}
	log := logger(c.Log, p.stderr)
	m, err := config.ThisMachine(&c)
	if err != nil {
		return err
	}
	if err := c.Resolve(m); err != nil {
		return usageError{err}
	}
	if s.Explain {
		return app.Explain(p.stdout, &c, m.MemorySource)
	}
	log.Info("starting", "version", c.Version, "role", c.Role, "memory", config.Size(c.MemoryBytes>>20<<20).String(), "of", m.MemorySource,
		"disk_bytes", c.DiskBytes, "data_dir", c.DataDir)
	return app.Run(ctx, app.Options{Config: c, Logger: log})
}

func (s *serveCmd) load(p *process) (config.Config, config.Origins, error) {
	from := config.Sources{File: p.configFile(s.ConfigFile), Environ: p.environ, Flags: s.Config, FlagsSet: p.flagsSet}
	c, origins, err := config.Load(from)
	c.Version, c.Commit = version, revision()
	return c, origins, err
}

// configFile returns the file of settings: the one of the flag, or else that of the environment.
func (p *process) configFile(flag string) string {
	if flag != "" {
		return flag
	}
	file := ""
	for _, kv := range p.environ {
		if value, ok := strings.CutPrefix(kv, config.ConfigEnv+"="); ok {
			file = value
		}
	}
	return file
}

// errorText logs the text of an error alone. The handler for text would print what an error of Pebble has
// with it, a stack trace of thousands of characters.
func errorText(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(err.Error())
	}
	return a
}

func logger(c config.Log, w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo // config has checked it
	}
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: errorText}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// tenantsCmd looks at the limits of tenants.
type tenantsCmd struct {
	Check checkTenantsCmd `cmd:"" help:"Check a file for the setting tenants.file. Names each mistake by line and field, and exits with 2 if there is one."`
}

type checkTenantsCmd struct {
	File       string `arg:"" help:"File with limits of tenants."`
	ConfigFile string `name:"config" short:"c" placeholder:"FILE" help:"YAML file with the settings of the server, which count where the file of tenants sets nothing."`
}

// Run reads the file as the server does.
func (t *checkTenantsCmd) Run(p *process) error {
	c, _, err := config.Load(config.Sources{File: p.configFile(t.ConfigFile), Environ: p.environ})
	if err != nil {
		return usageError{err}
	}
	m, err := config.ThisMachine(&c)
	if err != nil {
		return err
	}
	if err := c.Resolve(m); err != nil {
		return usageError{err}
	}
	read, err := app.ReadTenants(t.File, &c)
	if err != nil {
		return usageError{err}
	}
	_, err = fmt.Fprintf(p.stdout, "%s is valid: %s with limits of their own\n", t.File, english.Plural(read.Len(), "tenant", ""))
	return err
}
