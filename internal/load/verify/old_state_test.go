package verify

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/statefile"
)

// oldHeader is the first line of a file of version 1, as the tests of statefile have it.
const oldHeader = `{"version":1,"timeline":{"start":1700000000000000000,"step":1000000000},"remote_write":` +
	`{"seed":7,"targets":12,"metrics":3,"series":10,"labels":12,"name":"load_metric","value":"gauge"},"batch":50}` + "\n"

// TestOldStateOrigin: the samples of a state of version 1 are what they always were.
func TestOldStateOrigin(t *testing.T) {
	fs := vfs.NewMem()
	f, err := fs.Create("s", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(oldHeader)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := statefile.Load(fs, "s")
	if err != nil {
		t.Fatal(err)
	}
	o := newFleetOrigin(s)
	if !o.regular() || o.ms(17, 3) != 1700000003000 || o.cycle(17, 3) != 0 || o.LabelsOf(17, 0)[fleet.CycleLabel] != "" {
		t.Error("the origin of an old state is not what it was")
	}
}
