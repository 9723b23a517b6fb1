package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// DeviceWrites returns the number of writes that the device of a folder has completed since the machine
// started, including those of other processes and of the file system itself.
func DeviceWrites(dir string) (int64, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(dir, &st); err != nil {
		return 0, fmt.Errorf("%s: %w", dir, err)
	}
	text, err := os.ReadFile("/proc/diskstats")
	if err != nil {
		return 0, err
	}
	return deviceWrites(string(text), unix.Major(st.Dev), unix.Minor(st.Dev))
}

// deviceWrites finds the device's line: major, minor, name, then four figures about reads, then writes
// completed.
func deviceWrites(text string, major, minor uint32) (int64, error) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) > 7 && f[0] == strconv.Itoa(int(major)) && f[1] == strconv.Itoa(int(minor)) {
			return strconv.ParseInt(f[7], 10, 64)
		}
	}
	return 0, fmt.Errorf("no device %d:%d in diskstats", major, minor)
}
