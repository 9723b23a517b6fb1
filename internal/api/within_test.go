package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// A tenant with a limit of its own is refused beyond it, whether its requests run or wait, and others are
// not.
func TestQueriesOfATenantAreBounded(t *testing.T) {
	g := NewGate(NewSlots(2), time.Hour, gateMetrics())
	of := func(tenant string) context.Context {
		return model.WithCaller(t.Context(), model.Caller{Tenant: tenant})
	}
	refused := func(when string) {
		t.Helper()
		var e *Error
		if err := g.EnterWithin(of("a"), 3); !errors.As(err, &e) || e.Status != http.StatusTooManyRequests || !e.retryable() ||
			!strings.Contains(e.Error(), "tenant a has 3 queries running or waiting, and may have 3 (query.tenant-concurrent)") {
			t.Errorf("%s: %v", when, err)
		}
	}
	for range 2 {
		if err := g.EnterWithin(of("a"), 3); err != nil {
			t.Fatal(err)
		}
	}
	third := make(chan error, 1)
	go func() { third <- g.EnterWithin(of("a"), 3) }()
	for begin := time.Now(); g.slots.Waiting("a") == 0; time.Sleep(time.Millisecond) {
		if time.Since(begin) > 20*time.Second {
			t.Fatal("the third request does not wait")
		}
	}
	refused("two run and one waits")
	g.Leave(of("a"))
	if err := <-third; err != nil {
		t.Fatal(err)
	}
	g.Leave(of("a"))
	if err := g.EnterWithin(of("b"), 3); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	g.Leave(of("b"))
	g.Leave(of("a"))
	if err := g.EnterWithin(of("a"), 3); err != nil {
		t.Errorf("later: %v", err)
	}
	g.Leave(of("a"))
}
