package terminal

import (
	"bytes"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestScreen(t *testing.T) {
	for _, c := range []struct {
		environ []string
		want    Screen
	}{
		{nil, Screen{Width: 80, Height: 24}},
		{[]string{"COLUMNS=100", "LINES=50", "LANG=de_DE.UTF-8", "TERM=xterm"}, Screen{Width: 100, Height: 50, UTF8: true}},
		{[]string{"COLUMNS=-1", "LINES=many", "LC_ALL=C", "LANG=de_DE.UTF-8"}, Screen{Width: 80, Height: 24}},
		{[]string{"LC_ALL=", "LC_CTYPE=C.utf8", "LANG=C"}, Screen{Width: 80, Height: 24, UTF8: true}},
	} {
		if got := NewScreen(&bytes.Buffer{}, c.environ); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.environ, got, c.want)
		}
	}
}

func TestTerminalScreen(t *testing.T) {
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	if err := unix.IoctlSetWinsize(int(f.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 111}); err != nil {
		t.Skip(err)
	}
	for environ, want := range map[string]Screen{
		"TERM=xterm":  {Width: 111, Height: 33, Colour: true},
		"COLUMNS=5":   {Width: 111, Height: 33, Colour: true},
		"NO_COLOR=1":  {Width: 111, Height: 33},
		"TERM=dumb":   {Width: 111, Height: 33},
		"LANG=C.UTF8": {Width: 111, Height: 33, Colour: true, UTF8: true},
	} {
		if got := NewScreen(f, []string{environ}); got != want {
			t.Errorf("%s: %+v, want %+v", environ, got, want)
		}
	}
}
