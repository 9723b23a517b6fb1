package write

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestRefusalLog: each tenant and reason has a line a minute with the number of those left out, and neither
// the lines nor the memory grow with the number of tenants.
func TestRefusalLog(t *testing.T) {
	var out bytes.Buffer
	at := int64(now)
	p := New(Options{Seed: seed, Head: &store{}, Journal: &store{}, Now: func() int64 { return at }, Logger: slog.New(slog.NewTextHandler(&out, nil))})
	taken := func() string {
		defer out.Reset()
		return out.String()
	}
	for range 3 {
		p.LogRefusal("a", ReasonTooOld, Counts{Lines: 2}, "first\nline "+strings.Repeat("x", 1000))
		p.LogRefusal("b", ReasonTooOld, Counts{Lines: 1}, "another")
		p.LogRefusal("a", "400", Counts{}, "no JSON")
	}
	text := taken()
	for _, want := range []string{
		`msg="rows refused" tenant=a reason=too_old rows="2 lines" first="first\nline xxx`, ` tenant=b reason=too_old rows="1 line" first=another not_logged=0`,
		`msg="request refused" tenant=a reason=400 error="no JSON" not_logged=0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the log has no %s:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "\n"); n != 3 || len(text) > 1500 {
		t.Errorf("%d lines of %d bytes", n, len(text))
	}
	at += int64(time.Minute)
	p.LogRefusal("b", ReasonTooOld, Counts{Lines: 1}, "later")
	if text := taken(); !strings.Contains(text, "first=later not_logged=2") {
		t.Error(text)
	}
	for second := range 20 {
		at += int64(time.Second)
		for i := range 1000 {
			p.LogRefusal(fmt.Sprint("t", second, "-", i), ReasonTooOld, Counts{Lines: 1}, "x")
		}
	}
	if n := strings.Count(taken(), "\n"); n > 20*refusalsPerSecond || n < refusalsPerSecond || len(p.refusals.kinds) > maxRefusalKinds {
		t.Errorf("%d lines, %d kinds", n, len(p.refusals.kinds))
	}
	at += int64(time.Minute)
	p.LogRefusal("new", ReasonTooOld, Counts{Lines: 1}, "x")
	if text := taken(); !strings.Contains(text, "tenant=new") {
		t.Error(text)
	}
}
