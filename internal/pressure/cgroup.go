package pressure

import (
	"bufio"
	"bytes"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// cgroupLimit returns how many processors the cgroups of this process may use, as the files below a root say;
// infinite: no limit is known. GOMAXPROCS does not tell: Go rounds a limit up, and to at least 2.
func cgroupLimit(root fs.FS) float64 {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return math.Inf(1)
	}
	least := math.Inf(1)
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		// A line has a number, the controllers of version 1 or none, and a path.
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) < 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			// There may be cgroups of both versions.
			for _, mount := range []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"} {
				least = min(least, leastUpwards(root, mount, parts[2], quotaOfVersion2))
			}
		case hasController(parts[1], "cpu"):
			for _, mount := range []string{"sys/fs/cgroup/cpu", "sys/fs/cgroup/" + parts[1]} {
				least = min(least, leastUpwards(root, mount, parts[2], quotaOfVersion1))
			}
		}
	}
	return least
}

func hasController(list, name string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if one == name {
			return true
		}
	}
	return false
}

// leastUpwards returns the least limit of a cgroup and of those that it is in. Of the path, a container may
// see only the root: a file that is missing has no limit.
func leastUpwards(root fs.FS, mount, of string, quota func(root fs.FS, folder string) float64) float64 {
	least := math.Inf(1)
	for of = path.Clean("/" + of); ; of = path.Dir(of) {
		least = min(least, quota(root, path.Join(mount, of)))
		if of == "/" {
			return least
		}
	}
}

// quotaOfVersion2 reads "50000 100000": microseconds of CPU in each period, or "max 100000".
func quotaOfVersion2(root fs.FS, folder string) float64 {
	fields := strings.Fields(readText(root, folder+"/cpu.max"))
	if len(fields) < 2 {
		return math.Inf(1)
	}
	return ratio(fields[0], fields[1])
}

// quotaOfVersion1 reads the same from two files; -1 stands for no quota.
func quotaOfVersion1(root fs.FS, folder string) float64 {
	return ratio(strings.TrimSpace(readText(root, folder+"/cpu.cfs_quota_us")), strings.TrimSpace(readText(root, folder+"/cpu.cfs_period_us")))
}

func readText(root fs.FS, name string) string {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return string(text)
}

func ratio(quota, period string) float64 {
	q, err := strconv.ParseInt(quota, 10, 64)
	p, perr := strconv.ParseInt(period, 10, 64)
	if err != nil || perr != nil || q <= 0 || p <= 0 {
		return math.Inf(1)
	}
	return float64(q) / float64(p)
}
