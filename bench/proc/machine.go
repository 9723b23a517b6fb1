package proc

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine is where figures were measured.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"` // that this process may use
	Memory int64  `json:"memory_bytes"`
	Disk   string `json:"disk"` // file system of the data
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
}

// ThisMachine describes the machine, with the disk that a folder is on.
func ThisMachine(dir string) Machine {
	m := Machine{CPU: "unknown", Cores: runtime.NumCPU(), Disk: fileSystem(dir), Kernel: "unknown", Go: runtime.Version()}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.CPU = model(string(text))
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if kb, err := field(string(text), "MemTotal:"); err == nil {
			m.Memory = kb << 10
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	return m
}

// String describes the machine in a line.
func (m Machine) String() string {
	return fmt.Sprintf("%d cores of %s, %.1f GiB of memory, %s, Linux %s, %s",
		m.Cores, m.CPU, float64(m.Memory)/(1<<30), m.Disk, m.Kernel, m.Go)
}

func model(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// fileSystem returns the kind of file system of a folder. It decides the cost of a sync: on tmpfs, nothing.
func fileSystem(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "unknown"
	}
	switch int64(st.Type) {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs"
	}
	return fmt.Sprintf("file system %#x", int64(st.Type))
}
