package compact

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if underRace {
		// A quarter of rapid's default: one goroutine works in a random world, and the codecs take about a hundred
		// times as long. The command line comes later and overrides this.
		if err := flag.Set("rapid.checks", "25"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
