//go:build e2e

package badinput

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// carbonFiles starts servers with files of carbon that cannot be used.
func carbonFiles(bin string) group {
	g := group{file: "carbon-files", title: "Files of carbon"}
	add := func(setting, input, text string) {
		g.attacks = append(g.attacks, attack{input: "graphite." + setting + ": " + input, do: func(t *testing.T, _ *server) (string, string) {
			dir := t.TempDir()
			file := filepath.Join(dir, "carbon.conf")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			outcome, said := runCommand(t, bin, dir, nil, 5*time.Second, "serve", "--memory", "64MiB", "--graphite."+setting, file)
			return outcome, strings.ReplaceAll(said, dir, "FOLDER")
		}})
	}
	for _, setting := range []string{"storage-schemas", "storage-aggregation", "aggregation-rules", "rewrite-rules", "blacklist", "relay"} {
		add(setting, "a regular expression that is none", map[string]string{
			"storage-schemas": "[a]\npattern = (\nretentions = 60s:1d\n", "storage-aggregation": "[a]\npattern = (\naggregationMethod = sum\n",
			"aggregation-rules": "a.<x> (60) = sum (.<x>\n", "rewrite-rules": "[pre]\n( = a\n", "blacklist": "(\n",
			"relay": "[relay]\nRELAY_METHOD = rules\nDESTINATIONS = 127.0.0.1:1\n",
		}[setting])
		add(setting, "binary", "\x00\x01\xff\xfe")
		add(setting, "a line of 10 MB", strings.Repeat("x", 10<<20))
	}
	section := func(setting, input, text string) { add(setting, input, "[a]\n"+text) }
	section("storage-schemas", "no pattern", "retentions = 60s:1d\n")
	section("storage-schemas", "no retentions", "pattern = .\n")
	for _, bad := range []string{"60s", "0s:1d", "-60s:1d", "60s:soon", "60s:1d,60s:2d", "60s:1d,90s:30d", "60s:1d,10s:30d", "1s:" + strings.Repeat("9", 30) + "y"} {
		section("storage-schemas", "retentions = "+bad, "pattern = .\nretentions = "+bad+"\n")
	}
	add("storage-schemas", "a section twice", "[a]\npattern = a\nretentions = 60s:1d\n[a]\npattern = b\nretentions = 60s:1d\n")
	add("storage-schemas", "no section", "pattern = .\nretentions = 60s:1d\n")
	section("storage-aggregation", "an unknown method", "pattern = .\naggregationMethod = mode\n")
	section("storage-aggregation", "xFilesFactor = 2", "pattern = .\nxFilesFactor = 2\n")
	section("storage-aggregation", "xFilesFactor = x", "pattern = .\nxFilesFactor = x\n")
	for _, bad := range []string{
		"a.b.c", "a (60) = sum", "a (0) = sum b", "a (x) = sum b", "a (60) = mode b", "a (60) sum b", "a.<x> (60) = sum b.<y>", "(60) = sum b",
	} {
		add("aggregation-rules", bad, bad+"\n")
	}
	add("rewrite-rules", "no section", "a = b\n")
	add("rewrite-rules", "an unknown section", "[mid]\na = b\n")
	add("rewrite-rules", "no equals sign", "[pre]\na b\n")
	relay := func(input, text string) { add("relay", input, "[relay]\n"+text) }
	add("relay", "no section", "DESTINATIONS = 127.0.0.1:1\n")
	relay("no destination", "RELAY_METHOD = consistent-hashing\n")
	relay("a destination without a port", "DESTINATIONS = 127.0.0.1\n")
	relay("a destination with a bad port", "DESTINATIONS = 127.0.0.1:99999\n")
	relay("a destination twice", "DESTINATIONS = 127.0.0.1:1, 127.0.0.1:1\n")
	relay("an unknown method", "DESTINATIONS = 127.0.0.1:1\nRELAY_METHOD = random\n")
	relay("an unknown hash", "DESTINATIONS = 127.0.0.1:1\nRELAY_METHOD = consistent-hashing\nROUTER_HASH_TYPE = md4\n")
	relay("an unknown protocol", "DESTINATIONS = 127.0.0.1:1\nRELAY_METHOD = consistent-hashing\nDESTINATION_PROTOCOL = soap\n")
	relay("a replication factor of 0", "DESTINATIONS = 127.0.0.1:1\nRELAY_METHOD = consistent-hashing\nREPLICATION_FACTOR = 0\n")
	relay("a replication factor of x", "DESTINATIONS = 127.0.0.1:1\nRELAY_METHOD = consistent-hashing\nREPLICATION_FACTOR = x\n")
	return g
}
