package pressure

import (
	"math"
	"os"
	"testing"
	"testing/fstest"
)

func TestSpare(t *testing.T) {
	none := math.Inf(1)
	for _, c := range []struct {
		threads, machine int
		limit            float64
		want             int
	}{
		{1, 1, none, 2}, {2, 2, none, 2}, {16, 16, none, 4}, {64, 64, none, 16},
		{2, 64, none, 0}, {1, 2, none, 0}, // a limit
		{2, 2, 0.5, 0}, {2, 2, 1.5, 0}, {4, 4, 3.2, 0}, // limits that Go rounds up
		{2, 2, 2, 2}, {2, 2, 8, 2}, // as much as there is
	} {
		if got := spare(c.threads, c.machine, c.limit); got != c.want {
			t.Errorf("%d threads on %d processors with a limit of %g: %d more, want %d", c.threads, c.machine, c.limit, got, c.want)
		}
	}
}

// TestCgroupLimit reads files like those of a kernel.
func TestCgroupLimit(t *testing.T) {
	const v1 = "sys/fs/cgroup/cpu,cpuacct/a/b/"
	for what, c := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"no files":                 {nil, math.Inf(1)},
		"no quota":                 {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, math.Inf(1)},
		"version 2":                {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "50000 100000\n"}, 0.5},
		"a container of version 2": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5},
		"a group further up": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "100000 100000\n", "sys/fs/cgroup/a/b/cpu.max": "300000 100000\n",
		}, 1},
		"outside the namespace": {map[string]string{"proc/self/cgroup": "0::/../x\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2},
		"version 1": {map[string]string{
			"proc/self/cgroup": "5:memory:/a/b\n4:cpu,cpuacct:/a/b\n3:cpuset:/\n0::/a/b\n", v1 + "cpu.cfs_quota_us": "25000\n", v1 + "cpu.cfs_period_us": "50000\n",
		}, 0.5},
		"version 1 without a quota": {map[string]string{
			"proc/self/cgroup": "4:cpu,cpuacct:/a/b\n", v1 + "cpu.cfs_quota_us": "-1\n", v1 + "cpu.cfs_period_us": "100000\n",
		}, math.Inf(1)},
		"a container of version 1": {map[string]string{
			"proc/self/cgroup": "4:cpu,cpuacct:/docker/1\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
		}, 1.5},
		"both versions": {map[string]string{
			"proc/self/cgroup": "4:cpu:/a\n0::/a\n", "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "100000\n", "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/unified/a/cpu.max": "max 100000\n",
		}, 1},
		"nonsense": {map[string]string{"proc/self/cgroup": "x\n0::/\n", "sys/fs/cgroup/cpu.max": "0 0\n"}, math.Inf(1)},
	} {
		root := fstest.MapFS{}
		for name, text := range c.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := cgroupLimit(root); got != c.want {
			t.Errorf("%s: %g, want %g", what, got, c.want)
		}
	}
	t.Logf("this machine: %g", cgroupLimit(os.DirFS("/")))
}
