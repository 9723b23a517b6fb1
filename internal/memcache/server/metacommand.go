package server

import (
	"encoding/base64"
	"strconv"

	"github.com/shaledb/shale/internal/memcache/items"
	"github.com/shaledb/shale/internal/memcache/meta"
)

const (
	// mostFlags bounds the words of a meta command, and longestOpaque the token that a client gets back.
	mostFlags     = 19
	longestOpaque = 32
	longOpaque    = "CLIENT_ERROR opaque token too long"
	badFlag       = "CLIENT_ERROR invalid or duplicate flag"
	badToken      = "CLIENT_ERROR bad token in command line format"
)

// flags are those of a meta command.
type flags struct {
	words   [][]byte // as they are
	seen    meta.Letters
	ttl     uint32
	vivify  uint32
	recache uint32
	client  uint32
	cas     uint64
	mode    byte
	initial uint64
	delta   uint64
}

// parseFlags reads flags, and returns the error of memcached for wrong ones. It decodes the key.
func (c *conn) parseFlags(f *flags, list [][]byte, key *[]byte) (bad string) {
	f.words = list
	for _, w := range list {
		one := meta.Of(string(w[:1]))
		switch {
		case f.seen&one != 0 || w[0] >= 127:
			return "CLIENT_ERROR duplicate flag"
		case !known.Has(w[0]):
			return "CLIENT_ERROR invalid flag"
		}
		f.seen |= one
		if text := c.parseFlag(f, w, key); text != "" && (bad == "" || w[0] != 'F') {
			bad = text // of several, memcached tells the last; F has no text of its own
		}
	}
	return bad
}

// known are the flags that memcached 1.6.18 takes with any command. P and L have no effect.
var known = meta.Of("bNTRlOPLkstcfvhuqFCMJDI")

func (c *conn) parseFlag(f *flags, w []byte, key *[]byte) string {
	token := w[1:]
	seconds := func(to *uint32) string {
		t, ok := signed32(token)
		if !ok {
			return badToken
		}
		*to = c.expiry(t)
		return ""
	}
	ok := true
	switch w[0] {
	case 'b':
		n, err := base64.StdEncoding.Decode(*key, *key)
		if *key = (*key)[:n]; err != nil || n == 0 {
			return "CLIENT_ERROR error decoding key"
		}
	case 'T':
		return seconds(&f.ttl)
	case 'N':
		return seconds(&f.vivify)
	case 'R':
		return seconds(&f.recache)
	case 'F':
		if f.client, ok = number32(token); !ok {
			return badFormat
		}
	case 'C':
		if f.cas, ok = number(token); !ok {
			return badToken
		}
	case 'M':
		if len(token) != 1 {
			return "CLIENT_ERROR incorrect length for M token"
		}
		f.mode = token[0]
	case 'J':
		if f.initial, ok = number(token); !ok {
			return "CLIENT_ERROR invalid numeric initial value"
		}
	case 'D':
		if f.delta, ok = number(token); !ok {
			return "CLIENT_ERROR invalid numeric delta value"
		}
	}
	return ""
}

// meta is mg, ms, md and ma. The line has n words.
func (c *conn) meta(w [][]byte, n int) {
	switch {
	case n < 2:
		c.say("ERROR")
		return
	case len(w[1]) > meta.MaxKey || w[0][1] == 's' && n == 2:
		c.say(badFormat)
		return
	case n > mostFlags && w[0][1] == 'g':
		c.say("CLIENT_ERROR options flags are too long")
		return
	case n > mostFlags:
		c.say("CLIENT_ERROR options flags too long")
		return
	}
	switch w[0][1] {
	case 'g':
		c.metaGet(w[1], w[2:])
	case 's':
		c.metaSet(w[1], w[2:])
	case 'd':
		c.metaDelete(w[1], w[2:])
	case 'a':
		c.metaArithmetic(w[1], w[2:])
	}
}

// echo appends the key or the opaque token if the flag asks for it.
func (c *conn) echo(w, key []byte, binary bool) {
	switch w[0] {
	case 'O':
		c.out = append(append(c.out, ' '), w...)
	case 'k':
		c.out = append(c.out, ' ', 'k')
		if !binary {
			c.out = append(c.out, key...)
			return
		}
		c.out = append(base64.StdEncoding.AppendEncode(c.out, key), ' ', 'b')
	}
}

// echoAll is echo of all flags, and the end of the line.
func (c *conn) echoAll(f *flags, key []byte) {
	for _, w := range f.words {
		c.echo(w, key, f.seen.Has('b'))
	}
	c.out = append(c.out, '\r', '\n')
}

// opaqueTooLong reports whether the client wants more back than memcached gives.
func (f *flags) opaqueTooLong() bool {
	for _, w := range f.words {
		if w[0] == 'O' && len(w) > longestOpaque {
			return true
		}
	}
	return false
}

func (c *conn) number(letter byte, n uint64) {
	c.out = strconv.AppendUint(append(c.out, ' ', letter), n, 10)
}

// left appends the seconds that an item has left.
func (c *conn) left(it items.Item) {
	if it.Expires() == 0 {
		c.out = append(c.out, " t-1"...)
		return
	}
	c.number('t', uint64(it.Expires()-c.now))
}

// metaGet is mg.
func (c *conn) metaGet(key []byte, list [][]byte) {
	var f flags
	if bad := c.parseFlags(&f, list, &key); bad != "" {
		c.say(bad)
		return
	}
	if f.opaqueTooLong() {
		c.say(longOpaque)
		return
	}
	hash := hashOf(key)
	for counted := false; ; counted = true {
		sh, it, why := c.locate(key, hash)
		created := false
		if it == nil && f.seen.Has('N') {
			draft := items.Draft{Key: key, Hash: hash, CAS: c.s.cas.Add(1), Now: c.now, Reader: c.reader}
			if it = sh.Insert(&draft); it != nil {
				created = true
				c.changed(sh, hash)
			}
		}
		if !counted {
			c.countGet(sh, it, why, f.seen.Has('T'))
		}
		if it == nil {
			sh.Unlock()
			if !f.seen.Has('q') {
				c.out = append(c.out, "EN"...)
				c.echoAll(&f, key)
			}
			return
		}
		const most = 512 + 19*24
		need := most
		if f.seen.Has('v') {
			need += it.Size()
		}
		if !created && !c.fits(need) {
			sh.Unlock()
			if ok, err := c.outRoom(need); err != nil || !ok {
				c.quit = c.quit || err != nil
				c.say(noGet)
				return
			}
			continue
		}
		c.metaHit(sh, it, &f, created)
		sh.Unlock()
		return
	}
}

// metaHit appends what a get asks of an item. The shard is locked.
func (c *conn) metaHit(sh *items.Shard, it items.Item, f *flags, created bool) {
	if f.seen.Has('v') {
		c.out = strconv.AppendUint(append(c.out, "VA "...), uint64(it.Size()), 10)
	} else {
		c.out = append(c.out, "HD"...)
	}
	won := created
	var touch *uint32
	for _, w := range f.words {
		switch w[0] {
		case 'T':
			it.SetExpires(f.ttl)
			touch = &f.ttl
		case 'N':
			if created {
				it.SetExpires(f.vivify)
			}
		case 'R':
			won = won || !it.Has(items.Won) && !created && it.Expires() != 0 && it.Expires() < f.recache
		case 's':
			c.number('s', uint64(it.Size()))
		case 't':
			c.left(it)
		case 'c':
			c.number('c', it.CAS())
		case 'f':
			c.number('f', uint64(it.Flags()))
		case 'l':
			c.number('l', uint64(c.now-it.Used()))
		case 'h':
			fetched := uint64(0)
			if it.Has(items.Fetched) {
				fetched = 1
			}
			c.number('h', fetched)
		default:
			c.echo(w, it.Key(), it.Has(items.Binary))
		}
	}
	if it.Has(items.Won) {
		c.out = append(c.out, " Z"...)
	}
	if it.Has(items.Stale) {
		c.out = append(c.out, " X"...)
		won = won || !it.Has(items.Won)
	}
	if won {
		c.out = append(c.out, " W"...)
		it.Mark(items.Won)
	}
	c.out = append(c.out, '\r', '\n')
	if f.seen.Has('v') {
		c.out = append(append(c.out, it.Value()...), '\r', '\n')
	}
	switch {
	case !f.seen.Has('u'):
		c.wasRead(sh, it, touch)
	case touch != nil:
		c.changed(sh, it.Hash())
	}
}

// metaSet is ms.
func (c *conn) metaSet(key []byte, list [][]byte) {
	size, ok := signed32(list[0])
	if !ok || size < 0 || size > 1<<31-3 {
		c.say(badFormat)
		return
	}
	// The key is decoded where it is, so that the flags are read once: when the value is there, or never will
	// be.
	fits := !c.s.tooLarge(0, 0, int(size)) && c.room(c.next+int(size)+2)
	if fits && c.to-c.from < c.next+int(size)+2 {
		c.need = c.next + int(size) + 2
		return
	}
	refuse := func(text string) {
		c.sayAnyway(text)
		c.swallow = int(size) + 2
	}
	var f flags
	if bad := c.parseFlags(&f, list[1:], &key); bad != "" {
		refuse(bad)
		return
	}
	n := storing{key: key, hash: hashOf(key), flags: f.client, expires: f.ttl, cas: f.cas}
	switch f.mode {
	case 0, 'S':
		n.op = opSet
	case 'E':
		n.op = opAdd
	case 'A':
		n.op = opAppend
	case 'P':
		n.op = opPrepend
	case 'R':
		n.op = opReplace
	default:
		refuse("CLIENT_ERROR invalid mode for ms M token")
		return
	}
	if f.opaqueTooLong() {
		refuse(longOpaque)
		return
	}
	if f.seen.Has('C') && (n.op == opSet || n.op == opReplace) {
		n.op, n.stale = opCAS, f.seen.Has('I')
	}
	if c.s.tooLarge(len(key), f.client, int(size)) {
		c.s.count.tooLarge.Add(1)
		refuse(tooLarge)
		c.drop(key)
		return
	}
	if !fits {
		refuse(noStore)
		c.drop(key)
		return
	}
	value, _, valid := c.body(int(size))
	if !valid {
		c.sayAnyway(badChunk)
		return
	}
	if n.value = value; f.seen.Has('b') {
		n.marks = items.Binary
	}
	c.metaStored(&n, &f)
}

// metaStored stores a value, and appends what came of it.
func (c *conn) metaStored(n *storing, f *flags) {
	done, cas := c.store(n)
	switch done {
	case stored:
		if f.seen.Has('q') {
			return
		}
		c.out = append(c.out, "HD"...)
	case notStored:
		c.out = append(c.out, "NS"...)
	case exists:
		c.out = append(c.out, "EX"...)
	case notFound:
		c.out = append(c.out, "NF"...)
	case noMemory:
		c.s.count.noMemory.Add(1)
		c.sayAnyway(noStore)
		return
	}
	for _, w := range f.words {
		if w[0] == 'c' {
			c.number('c', cas)
			continue
		}
		c.echo(w, n.key, f.seen.Has('b'))
	}
	c.out = append(c.out, '\r', '\n')
}
