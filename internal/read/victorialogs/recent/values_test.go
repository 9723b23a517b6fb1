package recent

import (
	"bytes"
	"testing"
	"time"
)

// TestValues: the values that were used last stay, within the bound.
func TestValues(t *testing.T) {
	v := Values[int]{MaxBytes: 80}
	for i := range 8 {
		v.Put(i, bytes.Repeat([]byte{byte(i)}, 10))
	}
	if got := v.Get(0); len(got) != 10 {
		t.Fatalf("%q", got)
	}
	v.Put(0, []byte("other"))
	v.Put(8, bytes.Repeat([]byte{8}, 10))
	v.Put(9, make([]byte, 11)) // too large
	for i := range 10 {
		if got, want := v.Get(i), i != 1 && i != 9; (got != nil) != want || want && got[0] != byte(i) {
			t.Errorf("%d: %q", i, got)
		}
	}
}

// TestPauses: a pause ends, and another name has none.
func TestPauses(t *testing.T) {
	var p Pauses
	p.Begin("a", time.Hour)
	p.Begin("b", -time.Second)
	if !p.Lasts("a") || p.Lasts("b") || p.Lasts("") {
		t.Error("wrong pauses")
	}
	for range maxPauses {
		p.Begin("b", time.Hour)
	}
	if !p.Lasts("a") {
		t.Error("the same pause counts again")
	}
}

// TestRates: a name has its last rate, and the rates are bounded.
func TestRates(t *testing.T) {
	var r Rates
	if r.Get("a") != 0 {
		t.Error("a name without a rate has one")
	}
	r.Put("a", 1)
	r.Put("a", 2)
	r.Put("b", 3)
	if r.Get("a") != 2 || r.Get("b") != 3 || r.Get("c") != 0 {
		t.Error("wrong rates")
	}
	for i := range 2 * maxRates {
		r.Put(string(rune(i)), 1)
	}
	if len(r.of) > maxRates {
		t.Errorf("%d rates", len(r.of))
	}
}
