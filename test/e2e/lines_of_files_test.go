//go:build e2e

package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var logFiles = flag.String("log-files", "", "a folder whose files are pushed line by line; some odd ones are made if empty")

// oddFiles writes files with all kinds of lines: invalid UTF-8, NUL, empty, a quarter of a megabyte.
func oddFiles(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	draw := rand.New(rand.NewPCG(1, 2))
	var odd, plain strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&plain, "Nov 21 12:%02d:%02d host sshd[%d]: Failed password for root from 10.0.%d.%d port %d ssh2\n",
			i/60%60, i%60, draw.IntN(40000), draw.IntN(256), draw.IntN(256), draw.IntN(65536))
		switch i % 8 {
		case 0:
			odd.WriteByte('\n')
		case 1:
			odd.WriteString("carriage return\r\n")
		case 2:
			fmt.Fprintf(&odd, "%d \x00 NUL \x1b[31mred\x1b[0m \u2028 </script> \\u0041 \"\n", i)
		default:
			for range draw.IntN(200) {
				if c := byte(draw.IntN(256)); c != '\n' {
					odd.WriteByte(c)
				}
			}
			odd.WriteByte('\n')
		}
	}
	odd.WriteString(strings.Repeat("0123456789abcdef", 16<<10-1) + "\nthe last line has no end")
	writeFile(t, filepath.Join(dir, "odd.log"), odd.String())
	writeFile(t, filepath.Join(dir, "sshd.log"), plain.String())
	return dir
}

// TestLinesOfFiles pushes the lines of files, and reads them back byte for byte from buffers, after a
// restart, and from the bucket.
func TestLinesOfFiles(t *testing.T) {
	if *serverKind != "shale" {
		t.Skip("it is about logs")
	}
	dir := *logFiles
	if dir == "" {
		dir = oddFiles(t)
	}
	s := newServer(t, t.TempDir())
	s.start()
	out, err := exec.Command(s.program, "load", "logs", "--quiet", "--from", dir, "--span", "3h", "--state", s.stateOfLines(0), "--url", s.url()+"/loki/api/v1/push",
		"--query-url", s.url(), "--verify").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	t.Run("after a restart", func(t *testing.T) {
		s.stop(t)
		s.start()
		s.verifyLines(t, 0)
	})
	t.Run("from the bucket", func(t *testing.T) {
		s.stop(t)
		s.putAway(t)
		s.start()
		s.verifyLines(t, 0)
	})
}
