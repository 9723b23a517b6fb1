package logqltest

import (
	"fmt"
	"strconv"
	"strings"
)

// text returns a line.
func (w *writer) text() string {
	switch w.kind {
	case JSON, Gaps, Extreme:
		return w.json()
	case Logfmt, Resets, Edges:
		return w.logfmt()
	case Access:
		return w.access()
	case Metadata:
		return w.one("all is well", "it failed", "GET /a took 15ms", "POST /b took 2s", "")
	case Broken:
		return w.broken()
	}
	if w.r.IntN(2) == 0 {
		return w.json()
	}
	return w.logfmt()
}

func (w *writer) json() string {
	var parts []string
	for _, f := range w.fields() {
		value := strconv.Quote(f.value)
		// JSON has no NaN and no infinity, so numbers of some kinds are strings.
		if f.number && w.kind != Extreme && w.kind != Broken {
			value = f.value
		}
		parts = append(parts, strconv.Quote(f.name)+":"+value)
	}
	if w.r.IntN(3) == 0 {
		parts = append(parts, `"req":{"id":"`+w.one("r1", "r2")+`","bytes":`+strconv.Itoa(w.r.IntN(3000))+`}`)
	}
	if w.r.IntN(10) == 0 {
		parts = append(parts, `"app":"other"`)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (w *writer) logfmt() string {
	var parts []string
	for _, f := range w.fields() {
		value := f.value
		if strings.ContainsAny(value, " \"") {
			value = strconv.Quote(value)
		}
		parts = append(parts, f.name+"="+value)
	}
	if w.r.IntN(10) == 0 {
		parts = append(parts, "app=other")
	}
	return strings.Join(parts, " ")
}

func (w *writer) access() string {
	w.counter += float64(w.r.IntN(20))
	ip := w.one("10.0.0.1", "10.0.0.7", "192.168.1.4")
	return fmt.Sprintf(`%s - %s "%s %s" %s %d %s`, ip, w.one("ann", "bob"), w.one("GET", "POST"), w.one("/a", "/b", "/c/d"),
		w.one("200", "404", "500"), w.r.IntN(5000), w.number())
}

// broken returns a line that a parser may not understand.
func (w *writer) broken() string {
	l := w.json()
	if w.r.IntN(2) == 0 {
		l = w.logfmt()
	}
	switch w.r.IntN(6) {
	case 0:
		return strings.ToValidUTF8(l[:w.r.IntN(len(l))], "")
	case 1:
		return "no structure in this line"
	}
	return l
}
