//go:build e2e

package badinput

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// runCommand runs the program until it ends. A program that still runs after patience is told to stop, and
// the outcome says so.
func runCommand(t *testing.T, bin, dir string, env []string, patience time.Duration, args ...string) (outcome, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return runUntil(ctx, t, bin, dir, env, args...)
}

// runUntil runs the program until it or the context ends.
func runUntil(ctx context.Context, t *testing.T, bin, dir string, env []string, args ...string) (outcome, text string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Dir, cmd.Env = dir, append(environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	text = strings.ReplaceAll(errs.String(), dir, "DIR")
	if text == "" {
		text = out.String()
	}
	if strings.Contains(text, "panic") || strings.Contains(text, "goroutine ") {
		t.Errorf("shale %s: %s", strings.Join(args, " "), text)
	}
	// Log lines from before the end are not part of the outcome.
	var lines []string
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "level=INFO") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	text = strings.Join(lines, "\n")
	if ctx.Err() != nil {
		return "runs", text
	}
	if err != nil && cmd.ProcessState == nil {
		return "failed", err.Error()
	}
	return fmt.Sprint("exit ", cmd.ProcessState.ExitCode()), text
}

// environ returns the test's environment without Shale's variables, and with addresses that no other process
// has.
func environ() []string {
	list := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "SHALE_") })
	return append(list, "SHALE_HTTP_LISTEN=127.0.0.1:0", "SHALE_GRAPHITE_LISTEN=127.0.0.1:0", "SHALE_GRAPHITE_PICKLE_LISTEN=127.0.0.1:0")
}

// foreign makes a folder of files that Shale did not write.
func foreign(t *testing.T) string {
	dir := t.TempDir()
	for _, name := range []string{"notes.txt", "0000000001"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("not Shale's\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func commandLine(bin string) group {
	g := group{file: "command-line", title: "Command line"}
	// In args, FILE and FOLDER are a file and a folder that Shale did not write; CLOSED is a port without a
	// listener.
	add := func(args string) {
		g.attacks = append(g.attacks, attack{input: "shale " + args, do: func(t *testing.T, _ *server) (string, string) {
			dir, words := foreign(t), args
			if strings.Contains(words, "CLOSED") {
				words = strings.ReplaceAll(words, "CLOSED", freeAddr(t))
			}
			words = strings.NewReplacer("FILE", filepath.Join(dir, "notes.txt"), "FOLDER", dir).Replace(words)
			outcome, text := runCommand(t, bin, t.TempDir(), nil, 5*time.Second, strings.Fields(words)...)
			return outcome, strings.ReplaceAll(text, dir, "FOLDER")
		}})
	}
	for _, args := range []string{
		"nosuch", "serve extra", "serve --nosuch", "serve --memory 1x", "serve --memory 0", "serve --memory -5GiB", "serve --memory 1KiB",
		"serve --memory 150%", "serve --limits.tenants -1", "serve --limits.labels 0", "serve --limits.connections 0", "serve --limits.body-bytes 0",
		"serve --query.timeout x", "serve --query.timeout 0", "serve --query.max-concurrent 0", "serve --http-listen x",
		"serve --http-listen 127.0.0.1:99999", "serve --http-listen 192.0.2.1:0",
		"serve --http-listen 192.0.2.1:0 --auth.let-anyone-read-write-and-delete on", "serve --graphite-listen nohost", "serve --graphite-listen 192.0.2.1:0",
		"serve --graphite-listen 192.0.2.1:0 --auth.let-anyone-read-write-and-delete on", "serve --log.level loud",
		"serve --log.format xml", "serve --config /nonexistent.yml", "serve --config /", "serve --retention -1d", "serve --max-age 999999999999d",
		"serve --disk 0", "serve --source http://CLOSED", "serve --source victorialogs=http://user:secret@host", "serve --source victorialogs=host", "serve --victorialogs.accounts team-a", "serve --victorialogs.accounts a=1,a=2", "serve --victorialogs.extra-filters team-a", "serve --victorialogs.check-every 0", "serve --victorialogs.max-requests 0", "serve --data-dir FILE", "serve --data-dir FILE/x", "serve --bucket FILE",
		"serve --bucket s3:name", "serve --bucket http://name", "serve --bucket s3://", "serve --bucket s3://Name", "serve --bucket s3://key:secret@name",
		"serve --bucket s3://name?secret-key=secret", "serve --bucket s3://name/a//b", "serve --bucket s3://name?endpoint=host:9000",
		"serve --bucket s3://name?storage-class=GLACIER", "serve --bucket gs://name?region=eu", "serve --bucket azblob://name",
		"serve --bucket gs://name?credentials-file=/nonexistent", "serve --bucket azblob://name?account=a&credentials-file=FILE",
		"serve --bucket s3://name?ca-file=FILE", "inspect bucket", "inspect bucket FILE", "inspect bucket /nonexistent --check", "inspect bucket s3://name?x=y",
		"-v extra", "query", "query up --url x", "query up --url ftp://CLOSED", "query up --url http://CLOSED", "query up --time yesterday", "query up --start 1 --end 0", "query up --format xml",
		"query up --step 5s", "query up --start 1 --step -5s", "query up -o raw", "query up --forward",
		`query --logs {a="b"} --url http://CLOSED`, `query --logs {a="b"} --step 5s`, `query --logs {a="b"} -o csv`, `query --logs {a="b"} --start 1 --end 0`,
		"tail", `tail {a="b"} --url x`, `tail {a="b"} --url http://CLOSED`, `tail {a="b"} --delay 1m`,
		"labels --start soon", "labels --limit -1", "series", "series up --url http://CLOSED", "volume {", "volume --logs {", "volume --sort largest",
		"load", "load graphite --agents 0", "load graphite --rate NaN", "load graphite --rate x", "load remote-write --url ftp://x",
		"load logs --mix soup", "load logs --rate -1", "load logs --streams 0", "load logs --from FILE", "load logs --span 1h", "load logs --verify-only", "load logs --verify-only --state FILE",
		"load logs --url http://CLOSED --mb 1 --duration 1s --quiet",
		"load graphite --verify-only", "load graphite --verify-only --verify 1 --state FILE", "load graphite --verify-only --verify 1 --state /nonexistent",
		"plan", "plan cache --model soup", "plan cache --policies mru", "plan cache --sizes 0", "plan cache --sizes 1x", "plan cache --sample 0", "plan cache --sample NaN",
		"plan cache --days 1000", "plan cache --delay -1s", "plan cache --node cloud", "plan cache --target-hit 101", "plan cache --max-requests 1000", "plan cache --json --csv",
		"plan cache FILE", "plan cache FILE --format csv", "plan cache FOLDER", "plan cache /nonexistent.csv", "plan cache /dev/null", "plan cache /dev/zero --max-requests 1000",
		"plan cache /dev/zero --format csv",
		"inspect part", "inspect part FILE", "inspect part /dev/null", "inspect part /dev/zero", "inspect part FOLDER", "inspect part FILE --check --dump", "inspect block FILE",
		"inspect journal FILE", "inspect folder /nonexistent", "inspect journal FOLDER", "inspect journal FOLDER --check",
		"serve --graphite.blacklist /nonexistent", "serve --graphite.whitelist FOLDER", "serve --graphite.rewrite-rules FILE", "serve --graphite.blacklist /dev/zero",
		"graphite", "graphite explain", "graphite explain FILE", "graphite explain /nonexistent", "graphite explain FOLDER", "graphite explain /dev/null",
		"inspect folder FOLDER --check", "inspect catalogue FOLDER --check", "version extra",
	} {
		add(args)
	}
	g.attacks = append(g.attacks, attack{input: "shale load graphite --duration 1s, to a closed port", do: func(t *testing.T, _ *server) (string, string) {
		return runCommand(t, bin, t.TempDir(), nil, 10*time.Second, "load", "graphite", "--agents", "1", "--target", freeAddr(t), "--duration", "1s", "--quiet")
	}})
	for _, kv := range []string{"SHALE_MEMORY=much", "SHALE_UNHEARD_OF_SETTING=1", "SHALE_QUERY_TIMEOUT=", "SHALE_CONFIG=/nonexistent.yml"} {
		g.attacks = append(g.attacks, attack{input: kv + " shale serve", do: func(t *testing.T, _ *server) (string, string) {
			return runCommand(t, bin, t.TempDir(), []string{kv}, 5*time.Second, "serve")
		}})
	}
	for _, c := range []struct{ input, yaml string }{
		{"an unknown key", "memory: 128MiB\nmemroy: 1GiB\n"}, {"an unknown key below a known one", "query:\n  timeuot: 30s\n"},
		{"a bad value", "memory: much\n"}, {"a list for a value", "memory: [1, 2]\n"}, {"a number for a group", "query: 5\n"},
		{"a tab", "query:\n\ttimeout: 30s\n"}, {"a key twice", "memory: 1GiB\nmemory: 2GiB\n"}, {"not YAML", "{{{{"}, {"binary", "\x00\x01\xff\xfe"},
		{"two documents", "memory: 1GiB\n---\nmemory: 2GiB\n"}, {"an anchor bomb", bomb()}, {"10,000 nested lists", "memory: " + strings.Repeat("[", 10_000)},
		{"negative number", "limits:\n  connections: -1\n"}, {"number out of range", "limits:\n  connections: 99999999999999999999\n"},
	} {
		g.attacks = append(g.attacks, attack{input: "shale serve --config with " + c.input, do: func(t *testing.T, _ *server) (string, string) {
			dir := t.TempDir()
			name := filepath.Join(dir, "shale.yml")
			if err := os.WriteFile(name, []byte(c.yaml), 0o600); err != nil {
				t.Fatal(err)
			}
			return runCommand(t, bin, dir, nil, 5*time.Second, "serve", "--config", name)
		}})
	}
	taken := func(input, flag string) {
		g.attacks = append(g.attacks, attack{input: input, do: func(t *testing.T, _ *server) (string, string) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			return runCommand(t, bin, t.TempDir(), nil, 5*time.Second, "serve", "--memory", "64MiB", flag, l.Addr().String())
		}})
	}
	taken("shale serve --http-listen on a port in use", "--http-listen")
	taken("shale serve --graphite-listen on a port in use", "--graphite-listen")
	return g
}

// bomb is YAML whose aliases would grow to 10^9 words.
func bomb() string {
	var sb strings.Builder
	sb.WriteString("a: &a [x,x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c <= 'i'; c++ {
		fmt.Fprintf(&sb, "%c: &%c [", c, c)
		sb.WriteString(strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ",") + "]\n")
	}
	return sb.String()
}
