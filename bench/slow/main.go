package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/app"
	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/config"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := options(os.Args[1:], os.Environ())
	if err == nil {
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
		err = app.Run(ctx, o)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "slow: %v\n", err)
		os.Exit(1)
	}
}

// options reads the command line of `shale serve` and the two delays.
func options(args, environ []string) (app.Options, error) {
	if len(args) == 0 || args[0] != "serve" {
		return app.Options{}, errors.New("expected the subcommand serve")
	}
	flags := flag.NewFlagSet("slow", flag.ContinueOnError)
	syncDelay := flags.Duration("sync-delay", 0, "How much longer each sync of a file takes.")
	requestDelay := flags.Duration("request-delay", 0, "How much longer each request to the bucket takes.")
	for _, s := range config.Settings() {
		// The last variable of a name wins, so that flags override the environment.
		flags.Func(s.Name, s.Help, func(text string) error {
			environ = append(environ, s.Env+"="+text)
			return nil
		})
	}
	if err := flags.Parse(args[1:]); err != nil {
		return app.Options{}, err
	}
	c, _, err := config.Load(config.Sources{Environ: environ})
	if err != nil {
		return app.Options{}, err
	}
	m, err := config.ThisMachine(&c)
	if err == nil {
		err = c.Resolve(m)
	}
	o := app.Options{Config: c}
	if *syncDelay > 0 {
		o.FS = slowFS{vfs.Default, *syncDelay}
	}
	if *requestDelay > 0 {
		o.WrapBucket = func(b bucket.Bucket) bucket.Bucket {
			return fault.New(b, fault.Rule{Kind: fault.Slow, Delay: *requestDelay})
		}
	}
	return o, err
}
