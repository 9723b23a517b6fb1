package remote_test

import (
	"flag"
	"os"
	"testing"

	"github.com/shaledb/shale/internal/racetest"
)

// TestMain lowers the number of random worlds, unless the caller has set one: a world is four heads, two
// servers and hundreds of requests. With -short, rapid makes a fifth of them.
func TestMain(m *testing.M) {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "rapid.checks" })
	if checks := "24"; !set {
		if racetest.Fewer > 1 {
			checks = "5"
		}
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
