package proc

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	var u Usage
	if err := u.stat("7 (a) b (c) S 1 7 7 0 -1 4194304 5 0 0 0 1234 66 0 0 20 0 9 0 1 2 3"); err != nil || u.CPU != 13 {
		t.Errorf("%v: %v", u, err)
	}
	if err := u.status("Name:\tx\nVmHWM:\t   2048 kB\nVmRSS:\t1024 kB\n"); err != nil || u.RSS != 1<<20 || u.Peak != 2<<20 {
		t.Errorf("%v: %v", u, err)
	}
	if err := u.io("wchar: 5\nsyscw: 12\nwrite_bytes: 4096\n"); err != nil || u.WriteCalls != 12 || u.WriteBytes != 4096 {
		t.Errorf("%v: %v", u, err)
	}
	if u.stat("7 (a) S 1") == nil || u.status("VmRSS:\t1 kB") == nil || u.io("syscw: soup\nwrite_bytes: 1") == nil || u.io("syscw:\n") == nil {
		t.Error("nonsense is read")
	}
	if got := model("processor\t: 0\nmodel name\t: Big Iron\n"); got != "Big Iron" {
		t.Error(got)
	}
}

// A process that burns processor time and memory sees both.
func TestRead(t *testing.T) {
	before, err := Read(os.Getpid())
	if err != nil {
		t.Skip(err)
	}
	ballast := make([]byte, 32<<20)
	for i := range ballast {
		ballast[i] = byte(i)
	}
	for began := time.Now(); time.Since(began) < 60*time.Millisecond; {
		ballast[0]++
	}
	after, err := Read(os.Getpid())
	if err != nil || after.CPU <= before.CPU || after.Peak < before.RSS+16<<20 {
		t.Errorf("before %+v, after %+v: %v", before, after, err)
	}
	if _, err := Read(1 << 30); err == nil {
		t.Error("a process that is not there is read")
	}
	if ballast[1] != 1 {
		t.Error()
	}
}

func TestMachine(t *testing.T) {
	m := ThisMachine(t.TempDir())
	if m.Cores < 1 || !strings.Contains(m.String(), m.Go) || fileSystem("/nowhere") != "unknown" {
		t.Error(m)
	}
}

func TestWatch(t *testing.T) {
	n := 0
	seen := make(chan struct{})
	w := StartWatch(time.Millisecond, func() (map[string]float64, error) {
		if n++; n == 3 {
			close(seen)
		}
		if n == 2 {
			return nil, errors.New("away")
		}
		return map[string]float64{"n": float64(n)}, nil
	})
	<-seen
	got := w.Stop()["n"]
	if len(got) < 2 || got[0][1] != 1 || got[1][1] != 3 || got[1][0] < got[0][0] || w.Since() <= 0 {
		t.Error(got)
	}
}

func TestDeviceWrites(t *testing.T) {
	const text = "   8       0 sda 1 2 3 4 5 6 7 8\n 254       0 vda 5 0 0 0 77 0 0 0 0\n"
	if n, err := deviceWrites(text, 254, 0); err != nil || n != 77 {
		t.Error(n, err)
	}
	if _, err := deviceWrites(text, 1, 0); err == nil {
		t.Error("a device that is not there has writes")
	}
}
