package roles

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the recorded plans")

func parse(t *testing.T, args string) *Command {
	t.Helper()
	var c Command
	parser, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	return &c
}

// TestPlans compares the plans of named loads with those in testdata.
func TestPlans(t *testing.T) {
	for name, args := range map[string]string{
		"default":     "",
		"report":      "--series 200e6 --interval 60s --new-series 1 --logs 0",
		"internet":    "--series 1.3e9 --interval 26s --logs 100TB --tenants 1000",
		"mimir":       "--series 1e9 --interval 20s --logs 0",
		"sticky":      "--series 1.3e9 --interval 26s --logs 100TB --tenants 1000 --sticky --kafka-retention 24h",
		"relabelling": "--series 20e6 --new-series 10 --logs 0 --cores 2 --memory 16GiB",
		"logs":        "--series 0 --logs 20TB",
	} {
		t.Run(name, func(t *testing.T) {
			c := parse(t, args)
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			fmt.Fprintf(&out, "$ shale plan cluster %s\n", args)
			if err := c.Print(&out); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".txt")
			if *rewrite {
				if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if out.String() != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
			}
		})
	}
}

// TestMoreNeedsMore: no role gets fewer machines when the load grows.
func TestMoreNeedsMore(t *testing.T) {
	base := "--series 50e6 --interval 15s --logs 10TB --tenants 3 "
	before := parse(t, base).plan()
	for _, more := range []string{"--series 400e6", "--interval 1s", "--logs 900TB", "--new-series 5000", "--peak 9", "--busy 0.05", "--cores 2", "--replicas 5", "--kafka-retention 500h"} {
		after := parse(t, base+more).plan() // the last flag counts
		grown := false
		for i, r := range after.Roles {
			if r.Machines < before.Roles[i].Machines {
				t.Errorf("%s: %d machines for %s, and %d before", more, r.Machines, r.Name, before.Roles[i].Machines)
			}
			grown = grown || r.Machines > before.Roles[i].Machines
		}
		if !grown || after.Dollars <= before.Dollars || after.Partitions < before.Partitions || after.Partitions&(after.Partitions-1) != 0 {
			t.Errorf("%s: %+v after %+v", more, after, before)
		}
	}
	sticky := parse(t, base+"--sticky").plan()
	if sticky.Roles[0].Memory >= before.Roles[0].Memory || sticky.Labels >= before.Labels {
		t.Errorf("sticky: %+v, and %+v", sticky.Roles[0], before.Roles[0])
	}
}

func TestNonsense(t *testing.T) {
	for args, want := range map[string]string{
		"--series 0 --logs 0":  "nothing to plan",
		"--interval 0s":        "--interval: must be at least 1, got 0",
		"--busy 2":             "--busy: expected a share",
		"--series NaN":         "--series: must be at least 0",
		"--kafka-retention 1h": "--kafka-retention: must be at least 86400",
		"--tenants 0":          "--tenants: must be at least 1",
		"--memory 1MiB":        "--memory: must be at least",
		"--series=-5":          "--series: must be at least 0",
		"--peak 0.5":           "--peak: must be at least 1",
		"--label-refresh 1s":   "--label-refresh: must be at least 60",
	} {
		if err := parse(t, args).Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: expected %q, got %v", args, want, err)
		}
	}
}
