package server

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/memcache/items"
	"github.com/shaledb/shale/internal/memcache/meta"
)

// The texts of memcached.
const (
	badFormat  = "CLIENT_ERROR bad command line format"
	badChunk   = "CLIENT_ERROR bad data chunk"
	badExptime = "CLIENT_ERROR invalid exptime argument"
	badDelta   = "CLIENT_ERROR invalid numeric delta argument"
	notNumeric = "CLIENT_ERROR cannot increment or decrement non-numeric value"
	tooLarge   = "SERVER_ERROR object too large for cache"
	noStore    = "SERVER_ERROR out of memory storing object"
	noGet      = "SERVER_ERROR out of memory writing get response"
)

// command carries out the command of a line.
func (c *conn) command(line []byte) {
	w, rest := words(line, &c.words)
	if len(w) == 0 || len(w[0]) < 2 {
		c.say("ERROR")
		return
	}
	n := len(w)
	if rest != nil {
		n++ // more words than any command has
	}
	expect := func(least, most int) bool {
		if n < least || n > most {
			c.say("ERROR")
			return false
		}
		return true
	}
	switch string(w[0]) {
	case "get", "bget":
		c.get(w, rest, false)
	case "gets":
		c.get(w, rest, true)
	case "gat", "gats":
		c.touchAndGet(w, rest)
	case "mg", "ms", "md", "ma":
		c.meta(w, n)
	case "mn":
		c.say("MN")
	case "me":
		c.metaDebug(w)
	case "set", "add", "replace", "append", "prepend":
		if expect(5, 6) {
			c.update(w, classic[string(w[0])])
		}
	case "cas":
		if expect(6, 7) {
			c.update(w, opCAS)
		}
	case "incr", "decr":
		if expect(3, 4) {
			c.arithmetic(w)
		}
	case "delete":
		if expect(2, 4) {
			c.delete(w)
		}
	case "touch":
		if expect(3, 4) {
			c.touch(w)
		}
	case "flush_all":
		if expect(1, 3) {
			c.flushAll(w)
		}
	case "verbosity":
		if expect(2, 3) {
			c.noreply(w)
			if _, ok := number32(w[1]); !ok {
				c.say(badFormat)
			} else {
				c.say("OK") // the log has one level
			}
		}
	case "version":
		c.say("VERSION " + Version)
	case "quit":
		c.quit = true
	case "shutdown":
		c.say("ERROR: shutdown not enabled")
	case "stats":
		c.stats(w)
	default:
		if bytes.HasPrefix(w[len(w)-1], []byte("HTTP/")) {
			c.quit = true
			return
		}
		c.say("ERROR")
	}
}

var classic = map[string]operation{"set": opSet, "add": opAdd, "replace": opReplace, "append": opAppend, "prepend": opPrepend}

// noreply notes whether the client wants no response.
func (c *conn) noreply(w [][]byte) {
	if string(w[len(w)-1]) == "noreply" {
		c.quiet = true
	}
}

// get is get and gets.
func (c *conn) get(w [][]byte, rest []byte, unique bool) {
	if len(w) < 2 {
		c.say("ERROR")
		return
	}
	c.getAll(w[1:], rest, unique, nil)
}

// touchAndGet is gat and gats.
func (c *conn) touchAndGet(w [][]byte, rest []byte) {
	if len(w) < 2 {
		c.say("ERROR")
		return
	}
	t, ok := signed32(w[1])
	if !ok {
		c.say(badExptime)
		return
	}
	expires := c.expiry(t)
	c.getAll(w[2:], rest, len(w[0]) == len("gats"), &expires)
}

// getAll appends the values of keys, and touches them if there is an expiry.
func (c *conn) getAll(keys [][]byte, rest []byte, unique bool, expires *uint32) {
	for list, more := keys, rest; list != nil; list, more = c.moreKeys(more) {
		for _, key := range list {
			if len(key) > meta.MaxKey {
				c.say(badFormat)
				return
			}
		}
	}
	for list, more := keys, rest; list != nil; list, more = c.moreKeys(more) {
		for _, key := range list {
			if !c.value(key, unique, expires) {
				return
			}
		}
	}
	c.out = append(c.out, "END\r\n"...)
}

// moreKeys cuts the next words of a long line.
func (c *conn) moreKeys(line []byte) (list [][]byte, rest []byte) {
	if line == nil {
		return nil, nil
	}
	list, rest = words(line, &c.more)
	if len(list) == 0 {
		return nil, nil
	}
	return list, rest
}

// value appends the value of a key, if it has one, and reports whether the command can go on.
func (c *conn) value(key []byte, unique bool, expires *uint32) bool {
	hash := hashOf(key)
	for counted := false; ; counted = true {
		sh, it, why := c.locate(key, hash)
		if !counted {
			c.countGet(sh, it, why, expires != nil)
		}
		if it == nil {
			sh.Unlock()
			return true
		}
		const most = len("VALUE ") + 250 + 3*21 + 4
		if need := most + it.Size(); !c.fits(need) {
			sh.Unlock()
			if ok, err := c.outRoom(need); err != nil || !ok {
				c.quit = c.quit || err != nil
				c.say(noGet)
				return false
			}
			continue
		}
		c.out = append(append(c.out, "VALUE "...), key...)
		c.out = strconv.AppendUint(append(c.out, ' '), uint64(it.Flags()), 10)
		c.out = strconv.AppendUint(append(c.out, ' '), uint64(it.Size()), 10)
		if unique {
			c.out = strconv.AppendUint(append(c.out, ' '), it.CAS(), 10)
		}
		c.out = append(append(append(c.out, '\r', '\n'), it.Value()...), '\r', '\n')
		c.wasRead(sh, it, expires)
		sh.Unlock()
		return true
	}
}

// countGet counts a get, or a gat, which counts as a touch.
func (c *conn) countGet(sh *items.Shard, it items.Item, why items.Why, touch bool) {
	n := &sh.Counts
	if touch {
		n[items.Touches]++
		if it != nil {
			n[items.TouchHits]++
		}
		return
	}
	n[items.Gets]++
	switch {
	case it != nil:
		n[items.Hits]++
	case why == items.Expired:
		n[items.GetsExpired]++
	case why == items.Flushed:
		n[items.GetsFlushed]++
	}
}

// wasRead notes that a client has read an item, and changes its expiry if it has one.
func (c *conn) wasRead(sh *items.Shard, it items.Item, expires *uint32) {
	it.Use(c.now)
	if expires != nil {
		it.SetExpires(*expires)
		c.changed(sh, it.Hash())
	}
	if it.Reader() != c.reader {
		c.used(it)
	}
}

// update is set, add, replace, append, prepend and cas.
func (c *conn) update(w [][]byte, op operation) {
	c.noreply(w)
	if len(w[1]) > meta.MaxKey {
		c.say(badFormat)
		return
	}
	flags, ok1 := number32(w[2])
	expires, ok2 := signed32(w[3])
	size, ok3 := signed32(w[4])
	unique, ok4 := uint64(0), true
	if op == opCAS {
		unique, ok4 = number(w[5])
	}
	if !ok1 || !ok2 || !ok3 || !ok4 || size < 0 || size > 1<<31-3 {
		c.say(badFormat)
		return
	}
	if text := c.refuses(w[1], flags, int(size)); text != "" {
		c.say(text)
		c.swallow = int(size) + 2
		if op == opSet {
			c.drop(w[1])
		}
		return
	}
	value, whole, valid := c.body(int(size))
	if !whole {
		return
	}
	if !valid {
		c.say(badChunk)
		return
	}
	n := storing{op: op, key: w[1], hash: hashOf(w[1]), flags: flags, expires: c.expiry(expires), value: value, cas: unique}
	switch done, _ := c.store(&n); done {
	case stored:
		c.say("STORED")
	case notStored:
		c.say("NOT_STORED")
	case exists:
		c.say("EXISTS")
	case notFound:
		c.say("NOT_FOUND")
	case noMemory:
		c.s.count.noMemory.Add(1)
		c.say(noStore)
	}
}

// refuses returns the error for a value that the server cannot take, or makes room for it. If that moves the
// line, the value has not come yet.
func (c *conn) refuses(key []byte, flags uint32, size int) string {
	switch {
	case c.s.tooLarge(len(key), flags, size):
		c.s.count.tooLarge.Add(1)
		return tooLarge
	case !c.room(c.next + size + 2):
		return noStore
	}
	return ""
}

// arithmetic is incr and decr.
func (c *conn) arithmetic(w [][]byte) {
	c.noreply(w)
	if len(w[1]) > meta.MaxKey {
		c.say(badFormat)
		return
	}
	delta, ok := number(w[2])
	if !ok {
		c.say(badDelta)
		return
	}
	up := w[0][0] == 'i'
	sh, it, _ := c.locate(w[1], hashOf(w[1]))
	defer sh.Unlock()
	count(sh, up, items.Increments, items.Decrements)
	if it == nil {
		c.say("NOT_FOUND")
		return
	}
	it, n, ok := c.add(sh, it, up, delta)
	switch {
	case !ok && it == nil:
		c.say(notNumeric)
	case !c.quiet:
		c.out = append(strconv.AppendUint(c.out, n, 10), '\r', '\n')
	}
}

func count(sh *items.Shard, up bool, yes, no items.Count) {
	if up {
		sh.Counts[yes]++
	} else {
		sh.Counts[no]++
	}
}

// delete is delete.
func (c *conn) delete(w [][]byte) {
	if len(w) > 2 {
		zero := string(w[2]) == "0"
		c.noreply(w)
		if !(len(w) == 3 && (zero || c.quiet) || len(w) == 4 && zero && c.quiet) {
			c.say(badFormat + ".  Usage: delete <key> [noreply]")
			return
		}
	}
	if len(w[1]) > meta.MaxKey {
		c.say(badFormat)
		return
	}
	hash := hashOf(w[1])
	sh, it, _ := c.locate(w[1], hash)
	defer sh.Unlock()
	sh.Counts[items.Deletes]++
	if it == nil {
		c.changed(sh, hash) // the disk may have it, and not be able to read it now
		c.say("NOT_FOUND")
		return
	}
	sh.Counts[items.DeleteHits]++
	sh.Remove(it)
	c.changed(sh, hash)
	c.say("DELETED")
}

// touch is touch.
func (c *conn) touch(w [][]byte) {
	c.noreply(w)
	if len(w[1]) > meta.MaxKey {
		c.say(badFormat)
		return
	}
	t, ok := signed32(w[2])
	if !ok {
		c.say(badExptime)
		return
	}
	hash := hashOf(w[1])
	sh, it, _ := c.locate(w[1], hash)
	defer sh.Unlock()
	sh.Counts[items.Touches]++
	if it == nil {
		if t < 0 {
			c.changed(sh, hash) // as of delete
		}
		c.say("NOT_FOUND")
		return
	}
	sh.Counts[items.TouchHits]++
	expires := c.expiry(t)
	c.wasRead(sh, it, &expires)
	c.say("TOUCHED")
}

// flushAll is flush_all, at once or later.
func (c *conn) flushAll(w [][]byte) {
	c.noreply(w)
	c.s.count.flushes.Add(1)
	t := int32(0)
	if len(w) > 1 && !(len(w) == 2 && c.quiet) {
		var ok bool
		if t, ok = signed32(w[1]); !ok {
			c.say(badExptime)
			return
		}
	}
	at := uint32(0)
	if t > 0 {
		at = c.expiry(t)
	}
	if err := c.s.flushItems(at, c.now); err != nil {
		c.sayAnyway("SERVER_ERROR " + strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	c.say("OK")
}
