package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/shaledb/shale/internal/auth"
	"github.com/shaledb/shale/internal/cache/show"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/inventory"
	"github.com/shaledb/shale/internal/journal/kafka/setup"
	"github.com/shaledb/shale/internal/load/progress"
	"github.com/shaledb/shale/internal/memcache/commands"
	"github.com/shaledb/shale/internal/move/carbonexplain"
	"github.com/shaledb/shale/internal/plan/roles"
	"github.com/shaledb/shale/internal/plan/simulate"
	"github.com/shaledb/shale/internal/terminal"
)

// The exit codes of every subcommand.
const (
	exitOK     = 0
	exitFailed = 1 // the command ran and failed
	exitUsage  = 2 // the command line, the environment or the file is wrong
)

// cli is the command line.
type cli struct {
	Serve       serveCmd              `cmd:"" help:"Run the server."`
	Query       queryCmd              `cmd:"" help:"Run a PromQL or LogQL query."`
	Tail        tailCmd               `cmd:"" help:"Follow log lines as they arrive."`
	Labels      labelsCmd             `cmd:"" help:"List label names, or the values of a label."`
	Series      seriesCmd             `cmd:"" help:"List series of metrics, or streams of log lines."`
	Volume      volumeCmd             `cmd:"" help:"Count series and samples, or streams, lines and bytes, by a label."`
	Cardinality inventory.Cardinality `cmd:"" help:"Show which metrics, labels and values make series, and what creates them."`
	Usage       inventory.Usage       `cmd:"" help:"Show what tenants have written, stored and read, and what it costs."`
	Load        loadCmd               `cmd:"" help:"Generate load for a server and verify what it stored."`
	Import      importCmd             `cmd:"" help:"Import data from other stores."`
	Bucket      bucketCmd             `cmd:"" help:"Copy a bucket."`
	Graphite    carbonexplain.Group   `cmd:"" help:"Help with the move from carbon."`
	Cache       cacheCmd              `cmd:"" help:"Show what the cache of a server does, and what other sizes would do."`
	Memcached   commands.Group        `cmd:"" help:"Run tools for memcached. They need no Shale server."`
	Kafka       setup.Group           `cmd:"" help:"Make, check and adopt the topic of Kafka that carries writes between roles."`
	Plan        planCmd               `cmd:"" help:"Plan capacity before there is a server."`
	Token       tokenCmd              `cmd:"" help:"Make tokens for clients of a server."`
	Tenants     tenantsCmd            `cmd:"" help:"Check the limits of tenants."`
	Inspect     inspectCmd            `cmd:"" help:"Show and check Shale's files."`
	Version     versionCmd            `cmd:"" help:"Print the version."`
}

// planCmd answers questions before there is a server.
type planCmd struct {
	Cache   planCacheCmd   `cmd:"" help:"Simulate caches of several sizes and policies, and plan the cluster."`
	Cluster planClusterCmd `cmd:"" help:"Compute how many machines a load needs with roles on Kafka, and what they cost."`
}

type planClusterCmd struct {
	roles.Command `embed:""`
}

// Run prints the plan.
func (c *planClusterCmd) Run(p *process) error {
	if err := c.Check(); err != nil {
		return usageError{err}
	}
	return c.Print(p.stdout)
}

type planCacheCmd struct {
	simulate.Cache `embed:""`
}

// Run runs the simulation.
func (c *planCacheCmd) Run(ctx context.Context, p *process) error {
	if err := c.Check(); err != nil {
		return usageError{err}
	}
	return c.Simulate(ctx, p.stdout, p.progress())
}

// tokenCmd makes tokens.
type tokenCmd struct {
	New newTokenCmd `cmd:"" help:"Make a token. Prints the token on standard output, and its line for the auth.tokens file on standard error."`
}

type newTokenCmd struct {
	auth.Request `embed:""`
}

// Run makes a token.
func (c *newTokenCmd) Run(p *process) error {
	token, line, err := c.Make(time.Now())
	if err != nil {
		return usageError{err}
	}
	_, _ = fmt.Fprintln(p.stderr, line)
	_, err = fmt.Fprintln(p.stdout, token)
	return err
}

// cacheCmd looks at the cache of a server.
type cacheCmd struct {
	Show   show.Show   `cmd:"" default:"withargs" help:"Show what each tier does, and curves of other sizes. In a terminal, until it is interrupted."`
	WhatIf show.WhatIf `cmd:"" name:"what-if" help:"Show what other sizes would do with the traffic of the last hours."`
	Record show.Record `cmd:"" help:"Record a trace of what queries ask for, for shale plan cache."`
}

// process is the environment of a subcommand. Kong passes it to Run.
type process struct {
	environ        []string
	stdin          io.Reader // nil: empty
	replies        *bufio.Reader
	stdout, stderr io.Writer
	// flagsSet holds the names of the flags on the command line.
	flagsSet []string

	saying sync.Mutex // the messages of several goroutines do not mix
}

// say writes a message for people. What a server or a user put into it cannot move the cursor.
func (p *process) say(format string, args ...any) {
	p.saying.Lock()
	defer p.saying.Unlock()
	_, _ = fmt.Fprintf(p.stderr, "shale: %s\n", terminal.EscapeLines(fmt.Sprintf(format, args...)))
}

// progress shows progress on standard error.
func (p *process) progress() progress.Progress {
	f, ok := p.stderr.(*os.File)
	if !ok {
		return progress.Progress{Out: p.stderr}
	}
	info, err := f.Stat()
	return progress.Progress{Out: f, Terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// note is say for a remark, as opposed to an error.
func (p *process) note(format string, args ...any) { p.say("note: "+format, args...) }

func main() {
	// After the first signal the default handling is back, so a second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], &process{environ: os.Environ(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}))
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, p *process) int {
	var c cli
	exit := -1
	options := []kong.Option{
		kong.Name("shale"),
		kong.Description("Shale keeps metrics and logs: Graphite, Prometheus remote write, Loki push and OTLP in, PromQL and LogQL out.\n\n" +
			"Start a server with `shale serve`, then query it with `shale query up` and `shale query --logs '{app=\"web\"}'`. `shale volume` shows what it has."),
		kong.Writers(p.stdout, p.stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 110}),
		kong.ValueFormatter(describe),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(p, p.environ, p.progress()),
		kong.BindTo(p.stdout, (*io.Writer)(nil)),
	}
	for _, kind := range config.Kinds() {
		options = append(options, kong.NamedMapper(kind, settingMapper(kind)))
	}
	parser, err := kong.New(&c, options...)
	if err != nil {
		panic("BUG: the command line does not fit together: " + err.Error())
	}
	k, err := parser.Parse(joinNegative(customary(args)))
	if exit >= 0 { // --help
		return exit
	}
	if err != nil {
		p.say("%v", err)
		var parse *kong.ParseError
		if errors.As(err, &parse) && parse.Context != nil {
			fmt.Fprintf(p.stderr, "Try '%s --help'.\n", strings.TrimSpace("shale "+command(parse.Context)))
		}
		return exitUsage
	}
	for _, at := range k.Path {
		if at.Flag != nil && !at.Resolved {
			p.flagsSet = append(p.flagsSet, at.Flag.Name)
		}
	}
	switch err := k.Run(); {
	case err == nil:
		return exitOK
	case errors.As(err, new(usageError)), errors.As(err, new(setup.UsageError)):
		p.say("%v", err)
		return exitUsage
	default:
		p.say("%v", err)
		return exitFailed
	}
}

// settingMapper parses the flags of settings like their values in the file and the environment.
func settingMapper(kind string) kong.MapperFunc {
	return func(k *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := k.Scan.PopValueInto("value", &text); err != nil {
			return err
		}
		return config.Parse(kind, text, target)
	}
}

// customary accepts the usual first attempts with an unknown program.
func customary(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case len(args) == 1 && (args[0] == "--version" || args[0] == "-v"):
		return []string{"version"}
	}
	return args
}

// joinNegative lets a flag's value begin with a minus and a digit (--start -1h), which kong would take for a
// short flag.
func joinNegative(args []string) []string {
	var joined []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return append(joined, args[i:]...)
		}
		if i+1 < len(args) && strings.HasPrefix(a, "--") && !strings.Contains(a, "=") {
			if v := args[i+1]; len(v) > 1 && v[0] == '-' && v[1] >= '0' && v[1] <= '9' {
				a += "=" + v
				i++
			}
		}
		joined = append(joined, a)
	}
	return joined
}

// command returns the subcommands that were parsed: "query", "inspect part".
func command(k *kong.Context) string {
	var names []string
	for _, at := range k.Path {
		if at.Command != nil {
			names = append(names, at.Command.Name)
		}
	}
	return strings.Join(names, " ")
}

// describe is the help text of a flag with its default, which the placeholder hides otherwise.
func describe(v *kong.Value) string {
	if v.Flag == nil || v.Default == "" || v.IsBool() {
		return v.Help
	}
	if strings.Contains(v.Default, "/") && !strings.Contains(v.Default, "//") && !strings.HasPrefix(v.Default, ".") {
		return fmt.Sprintf("%s [%q]", v.Help, v.Default) // go/doc takes a bare path in brackets for a link
	}
	return fmt.Sprintf("%s [%s]", v.Help, v.Default)
}

// usageError is a mistake in the command line, the environment or the configuration file.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }
