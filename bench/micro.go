package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// microCmd is bench micro.
type microCmd struct {
	Base     string   `placeholder:"REF" help:"Commit to compare with."`
	Count    int      `default:"6" help:"Times that each benchmark is run."`
	Bench    string   `default:"." placeholder:"REGEXP" help:"Benchmarks to run."`
	ByName   bool     `help:"Pair benchmarks by name alone, for those that have moved to another package since."`
	Packages []string `arg:"" optional:"" help:"Packages, such as ./internal/store/part. Default: all."`
}

// Help returns examples.
func (*microCmd) Help() string {
	return `What has a change made of the file format?

    go run ./bench micro --base main ./internal/store/part`
}

// Run runs the benchmarks of Go packages here, and of a commit in turn with them.
func (c *microCmd) Run(ctx context.Context, out *streams) (err error) {
	if len(c.Packages) == 0 {
		c.Packages = []string{"./..."}
	}
	if c.Base == "" {
		return c.test(ctx, out, ".", c.Count, out.stdout)
	}
	work, err := os.MkdirTemp("", "shale-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	base, head := filepath.Join(work, "base.txt"), filepath.Join(work, "head.txt")
	err = withBase(ctx, c.Base, work, func(tree string) error {
		for i := range c.Count { // in turn, so that other work on the machine affects both
			fmt.Fprintf(out.stderr, "%d of %d\n", i+1, c.Count)
			for _, side := range []struct{ dir, file string }{{tree, base}, {".", head}} {
				if err := c.into(ctx, out, side.dir, side.file); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	args := []string{"base=" + base, "head=" + head}
	if c.ByName {
		args = append([]string{"-ignore", "pkg"}, args...)
	}
	return stat(ctx, out, args...)
}

// into runs the benchmarks once and appends their output to a file.
func (c *microCmd) into(ctx context.Context, out *streams, dir, file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(c.test(ctx, out, dir, 1, f), f.Close())
}

func (c *microCmd) test(ctx context.Context, out *streams, dir string, count int, to io.Writer) error {
	args := append([]string{"test", "-run", "^$", "-bench", c.Bench, "-benchmem", "-count", strconv.Itoa(count)}, c.Packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, to, out.stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("benchmarks in %s: %w", dir, err)
	}
	return nil
}

// stat runs benchstat.
func stat(ctx context.Context, out *streams, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"tool", "benchstat"}, args...)...)
	cmd.Stdout, cmd.Stderr = out.stdout, out.stderr
	return cmd.Run()
}
