package config

import (
	"errors"
	"os"
	"testing"
	"testing/fstest"

	"github.com/shaledb/shale/internal/model"
)

func tree(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{"proc/meminfo": {Data: []byte("MemFree: 5 kB\nMemTotal:       16777216 kB\n")}}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func TestMemoryLimit(t *testing.T) {
	const machine, unlimited = 16 << 30, "9223372036854771712\n"
	for _, c := range []struct {
		name   string
		files  map[string]string
		want   int64
		source string
	}{
		{"no cgroup", nil, machine, "the machine's memory"},
		{"version 2, own cgroup", map[string]string{
			"proc/self/cgroup": "0::/system.slice/shale.service\n", "sys/fs/cgroup/system.slice/shale.service/memory.max": "1073741824\n",
			"sys/fs/cgroup/system.slice/memory.max": "max\n"}, 1 << 30, "/sys/fs/cgroup/system.slice/shale.service/memory.max"},
		{"version 2, a parent binds", map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "2147483648\n"}, 2 << 30, "/sys/fs/cgroup/a/memory.max"},
		{"version 2, in a container that sees its own root", map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n"}, 512 << 20, "/sys/fs/cgroup/memory.max"},
		{"version 1", map[string]string{
			"proc/self/cgroup": "12:cpu,cpuacct:/x\n5:memory:/docker/abc\n1:name=systemd:/y\n0::/z\n",
			"sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "3221225472\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": unlimited},
			3 << 30, "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes"},
		{"version 1, in a container with the host's path", map[string]string{
			"proc/self/cgroup": "5:memory:/docker/abc\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "268435456\n"}, 256 << 20, "/sys/fs/cgroup/memory/memory.limit_in_bytes"},
		{"limit above the machine", map[string]string{
			"proc/self/cgroup": "5:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": unlimited}, machine, "the machine's memory"},
		{"rubbish", map[string]string{"proc/self/cgroup": "x\n::\n5:memory\n", "sys/fs/cgroup/memory.max": "-1\n"}, machine, "the machine's memory"},
		{"path with dots", map[string]string{"proc/self/cgroup": "0::/../../other\n", "sys/fs/cgroup/other/memory.max": "1048576000"}, 1048576000, "/sys/fs/cgroup/other/memory.max"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, source, err := MemoryLimit(tree(c.files))
			if err != nil || got != c.want || source != c.source {
				t.Errorf("got %d from %q (%v), want %d from %q", got, source, err, c.want, c.source)
			}
		})
	}
	if _, _, err := MemoryLimit(fstest.MapFS{}); err == nil {
		t.Error("no /proc/meminfo is not an error")
	}
	if n, source, err := MemoryLimit(os.DirFS("/")); err != nil || n < 64<<20 {
		t.Errorf("this machine: %d from %s, %v", n, source, err)
	}
}

func TestResolve(t *testing.T) {
	c := Default()
	if err := c.Resolve(Machine{MemoryBytes: 8 << 30, DiskBytes: 1000 << 20}); err != nil {
		t.Fatal(err)
	}
	if c.MemoryBytes != 4<<30 || c.DiskBytes != 900<<20 || c.Query.MaxBytes != 1<<30 || c.Write.MaxInflightBytes != (4<<30)*12/100 {
		t.Errorf("got %d, %d, %d, %d", c.MemoryBytes, c.DiskBytes, c.Query.MaxBytes, c.Write.MaxInflightBytes)
	}
	if err := c.Resolve(Machine{MemoryBytes: 64 << 20, MemorySource: "/x"}); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("half of 64 MiB: got %v, want an error of class invalid", err)
	}
}

func TestDiskSize(t *testing.T) {
	here, err := DiskSize(t.TempDir())
	if err != nil || here <= 0 {
		t.Fatalf("got %d, %v", here, err)
	}
	if below, err := DiskSize(t.TempDir() + "/not/there/yet"); err != nil || below <= 0 {
		t.Errorf("of a folder to be made: got %d, %v", below, err)
	}
}
