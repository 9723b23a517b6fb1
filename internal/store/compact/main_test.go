package compact

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if underRace {
		// Half of rapid's: one goroutine works in a random world, and the codecs take some hundred times as long. What the
		// command line says comes after this and counts.
		if err := flag.Set("rapid.checks", "50"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
