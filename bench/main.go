package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// cli is the command line.
type cli struct {
	Run       runCmd       `cmd:"" help:"Run loads against Shale and other servers, in turn."`
	Report    reportCmd    `cmd:"" help:"Write tables and plots of results into docs/benchmarks.md."`
	Compare   compareCmd   `cmd:"" help:"Compare two systems of results with benchstat."`
	Memory    memoryCmd    `cmd:"" help:"Print a table of the peak of memory of queries."`
	Mix       mixCmd       `cmd:"" help:"Print a table of light and heavy queries of many clients at the same time."`
	Tenants   tenantsCmd   `cmd:"" help:"Print a table of what one tenant that misbehaves does to 49 others."`
	Fronts    frontsCmd    `cmd:"" help:"Print tables of servers of Loki's API over one VictoriaLogs."`
	Renders   rendersCmd   `cmd:"" help:"Print a table of servers of Graphite's render API over equal points."`
	Misbehave misbehaveCmd `cmd:"" hidden:"" help:"Be the tenant that misbehaves."`
	Simulate  simulateCmd  `cmd:"" help:"Simulate a bucket over a month: objects, requests, money."`
	Micro     microCmd     `cmd:"" help:"Run the benchmarks of Go packages, here and at a commit."`
	List      listCmd      `cmd:"" help:"List the loads."`
}

// streams are the outputs of a subcommand: results and progress.
type streams struct{ stdout, stderr io.Writer }

func main() {
	// The first signal restores the default, so that a second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], &streams{os.Stdout, os.Stderr}))
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, out *streams) int {
	var c cli
	exit := -1
	parser, err := kong.New(&c,
		kong.Name("bench"),
		kong.Description("bench measures the cost of named loads for Shale and other servers. docs/benchmarks.md describes the method."),
		kong.Writers(out.stdout, out.stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 110}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(out),
	)
	if err != nil {
		panic("BUG: the command line does not fit together: " + err.Error())
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	k, err := parser.Parse(args)
	if exit >= 0 { // --help
		return exit
	}
	if err != nil {
		fmt.Fprintf(out.stderr, "bench: %v\n", err)
		return 2
	}
	if err := k.Run(); err != nil {
		fmt.Fprintf(out.stderr, "bench: %v\n", err)
		return 1
	}
	return 0
}

// listCmd is bench list.
type listCmd struct{}

// Run lists the loads.
func (*listCmd) Run(out *streams) error {
	for _, l := range loads() {
		long := ""
		if l.long {
			long = " Takes long: only run when it is named."
		}
		if _, err := fmt.Fprintf(out.stdout, "%-26s %s.%s\n", l.name, l.about, long); err != nil {
			return err
		}
	}
	return nil
}
