package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Usage is the resources that a process has used since its start, and its memory.
type Usage struct {
	// CPU is user and system time in seconds, of all threads. Linux counts it in hundredths of a second.
	CPU float64
	// RSS and Peak are the resident memory and its maximum, in bytes, since the start or since [ClearPeak].
	RSS, Peak int64
	// WriteCalls counts calls of write and similar, also to sockets. WriteBytes are the bytes dirtied for a
	// disk.
	WriteCalls, WriteBytes int64
}

// ticksPerSecond is the unit of times in /proc, on every architecture that Go knows.
const ticksPerSecond = 100

// Read returns the usage of a process. It fails once the process has ended.
func Read(pid int) (Usage, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	var u Usage
	stat, err1 := os.ReadFile(filepath.Join(dir, "stat"))
	status, err2 := os.ReadFile(filepath.Join(dir, "status"))
	io, err3 := os.ReadFile(filepath.Join(dir, "io"))
	if err := errors.Join(err1, err2, err3); err != nil {
		return u, err
	}
	if err := errors.Join(u.stat(string(stat)), u.status(string(status)), u.io(string(io))); err != nil {
		return u, fmt.Errorf("process %d: %w", pid, err)
	}
	return u, nil
}

// stat reads utime and stime, which are fields 14 and 15. The name of the process before them is in
// parentheses and may contain spaces and parentheses.
func (u *Usage) stat(text string) error {
	f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(f) < 13 {
		return fmt.Errorf("stat: got %d fields after the name", len(f))
	}
	user, err1 := strconv.ParseUint(f[11], 10, 64)
	system, err2 := strconv.ParseUint(f[12], 10, 64)
	u.CPU = float64(user+system) / ticksPerSecond
	return errors.Join(err1, err2)
}

func (u *Usage) status(text string) error {
	const kilo = 1 << 10
	rss, err1 := field(text, "VmRSS:")
	peak, err2 := field(text, "VmHWM:")
	u.RSS, u.Peak = rss*kilo, peak*kilo
	return errors.Join(err1, err2)
}

func (u *Usage) io(text string) error {
	var err1, err2 error
	u.WriteCalls, err1 = field(text, "syscw:")
	u.WriteBytes, err2 = field(text, "write_bytes:")
	return errors.Join(err1, err2)
}

// field returns the number after a word that begins a line.
func field(text, name string) (int64, error) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			f := strings.Fields(rest)
			if len(f) == 0 {
				break
			}
			return strconv.ParseInt(f[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("no %s", strings.TrimSuffix(name, ":"))
}

// ClearPeak makes the peak of a process its present memory.
func ClearPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}
