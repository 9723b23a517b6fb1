package app

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
)

// An older copy of the data folder, or of a part of it, does not start with a bucket that has later rows of
// its journal, and works with the bucket of its time.
func TestOlderDataFolder(t *testing.T) {
	s := newSetup(t, nil)
	must(t, s.push("a", up, s.now-3, 1))
	must(t, s.Ship())
	must(t, s.push("a", up, s.now-2, 2))
	must(t, s.Flush())
	old := s.mem.CrashClone(vfs.CrashCloneCfg{})
	must(t, s.push("a", up, s.now-1, 3))
	must(t, s.Ship())
	must(t, s.push("a", up, s.now, 4))
	end := s.mem.CrashClone(vfs.CrashCloneCfg{})
	must(t, s.Close())
	for _, dir := range []string{crashDir + "/head", crashDir} {
		disk := end.CrashClone(vfs.CrashCloneCfg{})
		must(t, disk.RemoveAll(dir))
		for p, data := range files(old) {
			if strings.HasPrefix(p, dir+"/") {
				putFile(disk, p, data)
			}
		}
		_, _, err := s.reopen(t, disk)
		if !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), "/data/head/MANIFEST") || !strings.Contains(err.Error(), "older copy") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	for disk, want := range map[*vfs.MemFS]string{old: "1 2", end: "1 2 3 4"} {
		r, _, err := s.reopen(t, disk)
		must(t, err)
		r.want(t, "a", want)
		must(t, r.Close())
	}
}
