package router

import (
	"bytes"
	"sync/atomic"
)

// op is a command.
type op uint8

const (
	opUnknown op = iota
	opGet
	opGets
	opGat
	opGats
	opSet
	opAdd
	opReplace
	opAppend
	opPrepend
	opCas
	opDelete
	opIncr
	opDecr
	opTouch
	opVersion
	opQuit
	opMetaGet
	opMetaSet
	opMetaDelete
	opMetaArithmetic
	opMetaDebug
	opMetaNoop
	opCount
)

var opNames = [opCount]string{"unknown", "get", "gets", "gat", "gats", "set", "add", "replace", "append", "prepend", "cas", "delete", "incr", "decr", "touch", "version", "quit",
	"mg", "ms", "md", "ma", "me", "mn"}

func (o op) values() bool { return o >= opGet && o <= opGats }
func (o op) meta() bool   { return o >= opMetaGet }
func (o op) stores() bool { return o >= opSet && o <= opCas || o == opMetaSet }

const (
	// maxKey is the longest key. maxLine is the longest line of a request: a get of some 250 long keys.
	maxKey  = 250
	maxLine = 64 << 10
	// maxBody bounds what a client may declare; the limit of a server is usually far less.
	maxBody = 1 << 30
)

// request is a request of a client, or the part of it that goes to one server. A client uses its requests
// again.
type request struct {
	op   op
	key  []byte // in the buffer of the client
	keys [][]byte
	// line is what is sent, without the end of the line and without what would keep the server from responding.
	line  []byte
	extra []byte // the exptime of gat
	size  int    // of the body, without its end; -1: there is none
	quiet bool   // noreply, or q
	bad   string // how a request that is not sent is answered, without the end of the line
	skip  int    // bytes of the body to pass over

	resp   []byte
	failed bool
	begun  int64 // nanoseconds
	state  atomic.Uint32
	wake   chan struct{}

	parts []*request // by server, of a get of several keys
	of    []int      // the part of each key
}

const (
	pending = iota
	done
	awaited
)

func newRequest() *request { return &request{wake: make(chan struct{}, 1)} }

func (r *request) reset() {
	*r = request{resp: r.resp[:0], wake: r.wake, keys: r.keys[:0], parts: r.parts[:0], of: r.of[:0], line: r.line[:0], size: -1}
	if cap(r.resp) > keptBuffer {
		r.resp = nil
	}
}

// finish hands a request back to its client.
func (r *request) finish() {
	if r.state.Swap(done) == awaited {
		r.wake <- struct{}{}
	}
}

// ready reports whether the response is complete.
func (r *request) ready() bool { return r.state.Load() == done }

// wait waits until it is.
func (r *request) wait() {
	if r.state.CompareAndSwap(pending, awaited) {
		<-r.wake
	}
}

// word cuts the first word off a line.
func word(line []byte) (first, rest []byte) {
	for len(line) > 0 && line[0] == ' ' {
		line = line[1:]
	}
	if i := bytes.IndexByte(line, ' '); i >= 0 {
		return line[:i], line[i:]
	}
	return line, nil
}

func opOf(name []byte) op {
	switch string(name) {
	case "get":
		return opGet
	case "set":
		return opSet
	case "gets":
		return opGets
	case "gat":
		return opGat
	case "gats":
		return opGats
	case "add":
		return opAdd
	case "replace":
		return opReplace
	case "append":
		return opAppend
	case "prepend":
		return opPrepend
	case "cas":
		return opCas
	case "delete":
		return opDelete
	case "incr":
		return opIncr
	case "decr":
		return opDecr
	case "touch":
		return opTouch
	case "version":
		return opVersion
	case "quit":
		return opQuit
	case "mg":
		return opMetaGet
	case "ms":
		return opMetaSet
	case "md":
		return opMetaDelete
	case "ma":
		return opMetaArithmetic
	case "me":
		return opMetaDebug
	case "mn":
		return opMetaNoop
	}
	return opUnknown
}

const (
	badLine = "CLIENT_ERROR bad command line format"
	badKey  = "CLIENT_ERROR line format: expected keys of 1 to 250 characters"
)

// parse reads the line of a request, without its end. It sets bad if the request must not be sent.
func (r *request) parse(line []byte) {
	name, rest := word(line)
	r.op = opOf(name)
	switch r.op {
	case opUnknown:
		r.bad = "ERROR"
		return
	case opQuit, opMetaNoop:
		return
	case opVersion:
		r.key = placeholder
		r.line = append(r.line, line...)
		return
	case opGat, opGats:
		r.extra, rest = word(rest)
		if !isNumber(r.extra, true) {
			r.bad = "CLIENT_ERROR invalid exptime argument"
			return
		}
		fallthrough
	case opGet, opGets:
		r.parseKeys(rest)
		return
	}
	r.key, rest = word(rest)
	if !validKey(r.key) {
		r.bad = badLine
		if len(r.key) > maxKey {
			r.bad = badKey
		}
	}
	if r.op.meta() {
		r.parseMeta(name, rest)
	} else {
		r.parseClassic(line, rest)
	}
}

// placeholder is the key by which twemproxy chooses the server that is asked for its version.
var placeholder = []byte("placeholder")

func (r *request) parseKeys(rest []byte) {
	for {
		var key []byte
		if key, rest = word(rest); len(key) == 0 {
			break
		}
		if !validKey(key) {
			r.bad = badKey
			return
		}
		r.keys = append(r.keys, key)
	}
	if len(r.keys) == 0 {
		r.bad = "ERROR"
		return
	}
	r.key = r.keys[0]
}

// parseClassic reads what is after the key of a command with one key.
func (r *request) parseClassic(line, rest []byte) {
	want := 0 // numbers
	switch {
	case r.op == opCas:
		want = 4
	case r.op.stores():
		want = 3
	case r.op != opDelete:
		want = 1
	}
	for i := range want {
		var field []byte
		field, rest = word(rest)
		if !isNumber(field, i == 1 || r.op == opTouch) {
			r.fail(badLine)
			return
		}
		if i == 2 {
			r.size = number(field)
		}
	}
	if r.size > maxBody {
		r.fail("SERVER_ERROR object too large for cache")
	}
	sent := line
	for {
		before := rest
		var field []byte
		if field, rest = word(rest); len(field) == 0 {
			break
		}
		switch {
		case string(field) == "noreply":
			r.quiet = true
			sent = line[:len(line)-len(before)]
		case r.op == opDelete && string(field) == "0":
		default:
			r.fail(badLine)
		}
	}
	r.line = append(r.line, sent...)
}

// fail says how a request is answered that is not sent. The first reason counts.
func (r *request) fail(how string) {
	if r.bad == "" {
		r.bad = how
	}
}

// parseMeta reads the flags of a meta command, and leaves q out.
func (r *request) parseMeta(name, rest []byte) {
	r.line = append(append(append(r.line, name...), ' '), r.key...)
	if r.op == opMetaSet {
		var field []byte
		if field, rest = word(rest); !isNumber(field, false) {
			r.fail("CLIENT_ERROR bad data chunk")
			return
		}
		if r.size = number(field); r.size > maxBody {
			r.fail("SERVER_ERROR object too large for cache")
		}
		r.line = append(append(r.line, ' '), field...)
	}
	for {
		var flag []byte
		if flag, rest = word(rest); len(flag) == 0 {
			return
		}
		if string(flag) == "q" {
			r.quiet = true
			continue
		}
		r.line = append(append(r.line, ' '), flag...)
	}
}

func validKey(key []byte) bool {
	if len(key) == 0 || len(key) > maxKey {
		return false
	}
	for _, c := range key {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

func isNumber(b []byte, signed bool) bool {
	if signed && len(b) > 1 && b[0] == '-' {
		b = b[1:]
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0 && len(b) <= 20
}

// number returns a number of digits, or more than maxBody.
func number(b []byte) (n int) {
	for _, c := range b {
		if n = n*10 + int(c-'0'); n > maxBody {
			return maxBody + 1
		}
	}
	return n
}

// suppressed reports whether a quiet request gets no response.
func (r *request) suppressed() bool {
	if !r.quiet || r.failed && r.op.meta() {
		return false
	}
	if !r.op.meta() {
		return true // noreply
	}
	code := r.resp[:min(2, len(r.resp))]
	switch r.op {
	case opMetaGet:
		return string(code) == "EN"
	case opMetaSet:
		return string(code) == "HD"
	default:
		return string(code) == "HD" || string(code) == "NF" || r.op == opMetaArithmetic && string(code) == "VA"
	}
}
