package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// Machine is the memory and the disk of the machine.
type Machine struct {
	// MemoryBytes is the most that the process may use, and MemorySource is the origin of this limit.
	MemoryBytes  int64
	MemorySource string
	// DiskBytes is the size of the data folder's file system.
	DiskBytes int64
}

// ThisMachine returns the memory and disk that a configuration takes shares of on this machine.
func ThisMachine(c *Config) (Machine, error) {
	m := Machine{MemorySource: "the setting"}
	var err error
	// An absolute size needs no limit, which some machines do not report.
	if c.Memory.IsPart() {
		if m.MemoryBytes, m.MemorySource, err = MemoryLimit(os.DirFS("/")); err != nil {
			return m, err
		}
	}
	if m.DiskBytes, err = DiskSize(c.DataDir); err != nil {
		return m, fmt.Errorf("data folder: %w", err)
	}
	return m, nil
}

// Resolve turns every share into bytes.
func (c *Config) Resolve(m Machine) error {
	c.MemoryBytes = c.Memory.Of(m.MemoryBytes)
	if c.MemoryBytes < minMemory {
		return fmt.Errorf("%w configuration: memory: %s of %s (%s) is %s: must be at least %s", model.ErrInvalid,
			c.Memory, Size(m.MemoryBytes), m.MemorySource, Size(c.MemoryBytes), Size(minMemory))
	}
	c.DiskBytes = c.Disk.Of(m.DiskBytes)
	c.Write.MaxInflightBytes = c.Inflight.Of(c.MemoryBytes)
	c.Query.MaxBytes = c.QueryBytes.Of(c.MemoryBytes)
	c.Results.MaxBytes = c.ResultsMemory.Of(c.MemoryBytes)
	return nil
}

// MemoryLimit returns the most memory that this process may use: the least of the memory of the machine and
// of the limits of its cgroups, of both versions. The root is the root of the file system, such as
// os.DirFS("/").
func MemoryLimit(root fs.FS) (limit int64, source string, err error) {
	limit, err = memTotal(root)
	if err != nil {
		return 0, "", err
	}
	source = "the machine's memory"
	for _, file := range cgroupFiles(root) {
		// A missing file is normal: the root cgroup has none, and inside a container the kernel often reports a
		// path of the host, which is not visible there.
		text, err := fs.ReadFile(root, file)
		if err != nil {
			continue
		}
		// "max", and the huge number that stands for it in version 1, mean no limit.
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && n > 0 && n < limit {
			limit, source = n, "/"+file
		}
	}
	return limit, source, nil
}

// cgroupFiles returns the files that may hold a limit, of the cgroup of the process and of each one above it,
// since the lowest limit applies.
func cgroupFiles(root fs.FS) []string {
	const mount = "sys/fs/cgroup"
	files := []string{mount + "/memory.max", mount + "/memory/memory.limit_in_bytes"}
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return files
	}
	for line := range strings.Lines(string(text)) {
		// hierarchy:controllers:path; version 2 has the hierarchy 0 and no controllers.
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		base, file := "", ""
		switch {
		case part[0] == "0" && part[1] == "":
			base, file = mount, "memory.max"
		case hasWord(part[1], "memory"):
			base, file = mount+"/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for dir := path.Clean("/" + part[2]); dir != "/"; dir = path.Dir(dir) {
			files = append(files, path.Join(base, dir, file))
		}
	}
	return files
}

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

func memTotal(root fs.FS) (int64, error) {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("find the memory of the machine (or give --memory a size): %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil && n > 0 {
				return n << 10, nil
			}
		}
	}
	return 0, errors.New("/proc/meminfo has no MemTotal; give --memory a size")
}
