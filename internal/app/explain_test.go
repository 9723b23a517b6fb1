package app

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/config"
)

// The shares that are shown are those that the rooms get, and add up to what TestSharesAddUp allows.
func TestExplain(t *testing.T) {
	c := config.Default()
	if err := c.Resolve(config.Machine{MemoryBytes: 8 << 30, DiskBytes: 100 << 30}); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := Explain(&text, &c, "the machine's memory"); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, m := range regexp.MustCompile(`([0-9.]+) %`).FindAllStringSubmatch(text.String(), -1) {
		share, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += share
	}
	if sum < 85 || sum > 100 {
		t.Errorf("the shares are %v %% of the budget:\n%s", sum, text.String())
	}
	if strings.Contains(text.String(), "replicas") {
		t.Errorf("no replicas are elected:\n%s", text.String())
	}
	text.Reset()
	if err := c.HA.UnmarshalText([]byte("on")); err != nil {
		t.Fatal(err)
	}
	if err := Explain(&text, &c, "the machine's memory"); err != nil || !strings.Contains(text.String(), "replicas ") {
		t.Errorf("with replicas: %v\n%s", err, text.String())
	}
	for _, want := range []string{"memory budget  4.0 GiB", "known set ", "active series ", "million", "one query ", "half of "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing:\n%s", want, text.String())
		}
	}
	if got := rounded(53_421_000) + ", " + rounded(7) + ", " + rounded(1.25e12) + ", " + rounded(149_000); got != "53 million, 7, 1.2 trillion, 149 thousand" {
		t.Error(got)
	}
}
