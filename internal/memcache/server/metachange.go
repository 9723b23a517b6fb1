package server

import (
	"encoding/base64"
	"strconv"

	"github.com/shaledb/shale/internal/memcache/items"
	"github.com/shaledb/shale/internal/memcache/meta"
)

// metaDelete is md, which may mark an item as out of date instead.
func (c *conn) metaDelete(key []byte, list [][]byte) {
	var f flags
	if c.parseFlags(&f, list, &key) != "" {
		c.say(badFlag)
		return
	}
	if f.opaqueTooLong() {
		c.say(longOpaque)
		return
	}
	hash := hashOf(key)
	sh, it, _ := c.locate(key, hash)
	defer sh.Unlock()
	switch {
	case it == nil:
		c.changed(sh, hash) // the disk may have it, and not be able to read it now
		sh.Counts[items.Deletes]++
		c.out = append(c.out, "NF"...)
	case f.seen.Has('C') && it.CAS() != f.cas:
		sh.Counts[items.Deletes]++
		c.out = append(c.out, "EX"...)
	default:
		if f.seen.Has('I') {
			if f.seen.Has('T') {
				it.SetExpires(f.ttl)
			}
			it.Mark(items.Stale)
			it.Unmark(items.Won)
			it.SetCAS(c.s.cas.Add(1))
		} else {
			sh.Counts[items.Deletes]++
			sh.Counts[items.DeleteHits]++
			sh.Remove(it)
		}
		c.changed(sh, hash)
		if f.seen.Has('q') {
			return
		}
		c.out = append(c.out, "HD"...)
	}
	c.echoAll(&f, key)
}

// metaArithmetic is ma.
func (c *conn) metaArithmetic(key []byte, list [][]byte) {
	f := flags{delta: 1}
	if c.parseFlags(&f, list, &key) != "" {
		c.say(badFlag)
		return
	}
	up := true
	switch f.mode {
	case 0, 'I', '+':
	case 'D', '-':
		up = false
	default:
		c.say("CLIENT_ERROR invalid mode for ma M token")
		return
	}
	if f.opaqueTooLong() {
		c.say(longOpaque)
		return
	}
	hash := hashOf(key)
	sh, it, _ := c.locate(key, hash)
	defer sh.Unlock()
	count(sh, up, items.Increments, items.Decrements)
	created, n := false, f.initial
	switch {
	case it == nil && f.seen.Has('N'):
		var digits [20]byte
		text := strconv.AppendUint(digits[:0], n, 10)
		draft := items.Draft{Key: key, Hash: hash, Size: len(text), CAS: c.s.cas.Add(1), Now: c.now, Reader: c.reader}
		if it = sh.Insert(&draft); it == nil {
			c.say("SERVER_ERROR Out of memory allocating new item")
			return
		}
		copy(it.Value(), text)
		c.changed(sh, hash)
		created = true
	case it == nil:
		c.out = append(c.out, "NF"...)
		c.echoAll(&f, key)
		return
	case f.cas != 0 && it.CAS() != f.cas:
		c.out = append(c.out, "EX"...)
		c.echoAll(&f, key)
		return
	default:
		var ok bool
		if it, n, ok = c.add(sh, it, up, f.delta); !ok {
			c.say(notNumeric)
			return
		}
	}
	from := len(c.out)
	c.arithmeticHit(sh, it, &f, key, n, created)
	if f.seen.Has('q') && !created {
		c.out = c.out[:from]
	}
}

// arithmeticHit appends what ma asks of an item.
func (c *conn) arithmeticHit(sh *items.Shard, it items.Item, f *flags, key []byte, n uint64, created bool) {
	var digits [20]byte
	text := strconv.AppendUint(digits[:0], n, 10)
	if f.seen.Has('v') {
		c.out = strconv.AppendInt(append(c.out, "VA "...), int64(len(text)), 10)
	} else {
		c.out = append(c.out, "HD"...)
	}
	for _, w := range f.words {
		switch w[0] {
		case 'c':
			c.number('c', it.CAS())
		case 't':
			c.left(it)
		case 'T':
			it.SetExpires(f.ttl)
			c.changed(sh, it.Hash())
		case 'N':
			if created {
				it.SetExpires(f.vivify)
			}
		default:
			c.echo(w, key, f.seen.Has('b'))
		}
	}
	c.out = append(c.out, '\r', '\n')
	if f.seen.Has('v') {
		c.out = append(append(c.out, text...), '\r', '\n')
	}
}

// metaDebug is me, which says what is known of an item.
func (c *conn) metaDebug(w [][]byte) {
	if len(w) < 2 || len(w[1]) > meta.MaxKey {
		c.say(badFormat)
		return
	}
	key := w[1]
	if len(w) > 2 && string(w[2]) == "b" {
		n, err := base64.StdEncoding.Decode(key, key)
		if key = key[:n]; err != nil || n == 0 {
			c.say(badFormat)
			return
		}
	}
	sh, it, _ := c.locate(key, hashOf(key))
	defer sh.Unlock()
	sh.Counts[items.Metas]++
	if it == nil {
		c.say("EN")
		return
	}
	c.out = append(c.out, "ME "...)
	if it.Has(items.Binary) {
		c.out = base64.StdEncoding.AppendEncode(c.out, key)
	} else {
		c.out = append(c.out, key...)
	}
	exp := int64(-1)
	if it.Expires() != 0 {
		exp = int64(c.now) - int64(it.Expires())
	}
	fetched := "no"
	if it.Has(items.Fetched) {
		fetched = "yes"
	}
	c.out = strconv.AppendInt(append(c.out, " exp="...), exp, 10)
	c.out = strconv.AppendUint(append(c.out, " la="...), uint64(c.now-it.Used()), 10)
	c.out = strconv.AppendUint(append(c.out, " cas="...), it.CAS(), 10)
	c.out = append(append(c.out, " fetch="...), fetched...)
	c.out = strconv.AppendInt(append(c.out, " cls=1 size="...), int64(memcachedSize(len(key), it.Flags(), it.Size())), 10)
	c.out = append(c.out, '\r', '\n')
}
