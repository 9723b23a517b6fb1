package memcached

import (
	"context"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/memcache"
	"github.com/shaledb/shale/internal/memcache/meta"
)

const (
	// claimSeconds is how long the claim of a process that reads the bucket stands.
	claimSeconds = 5
	// firstPause is the first pause of a reader that waits for the page of another; each one after it is twice
	// as long.
	firstPause = time.Millisecond
)

var (
	// claim asks for a value, and claims one that is missing: the server makes an empty value, and tells all
	// that come after that it is claimed. again asks without a claim.
	claim = meta.Of("vqN")
	again = meta.Of("vq")
)

// lookup is one lookup of several keys.
type lookup struct {
	text    []byte   // of the names
	names   [][]byte // full names
	calls   []memcache.Call
	places  []int // of the calls among the keys
	claimed []int // places of the keys that other processes are bringing
}

var lookups = sync.Pool{New: func() any { return new(lookup) }}

// begin makes a call of each key.
func (l *lookup) begin(t *Tier, keys []cache.Key) {
	for i, k := range keys {
		from := len(l.text)
		l.text = t.appendName(l.text, k)
		l.names = append(l.names, l.text[from:len(l.text):len(l.text)])
		l.places = append(l.places, i)
	}
	if len(keys) > 0 && keys[0].Kind == cache.Counts {
		// Others bring it only after a while, and until then it is not worth waiting for.
		l.makeCalls(t, again)
		return
	}
	l.makeCalls(t, claim)
}

func (l *lookup) makeCalls(t *Tier, letters meta.Letters) {
	l.calls = l.calls[:0]
	for _, place := range l.places {
		l.calls = append(l.calls, memcache.Call{Request: meta.Request{
			Verb: meta.Get, Key: t.keyOf(l.names[place]), Flags: meta.Flags{Letters: letters, Vivify: claimSeconds},
		}})
	}
}

// end gives the lookup back, without the values.
func (l *lookup) end() {
	clear(l.calls)
	clear(l.names)
	l.text, l.names, l.calls, l.places, l.claimed = l.text[:0], l.names[:0], l.calls[:0], l.places[:0], l.claimed[:0]
	lookups.Put(l)
}

// round sends the calls, and takes what came of them.
func (l *lookup) round(ctx context.Context, t *Tier, found []cache.Found, deadline time.Time) {
	t.client.Read(ctx, deadline, l.calls)
	l.claimed = l.claimed[:0]
	for i := range l.calls {
		call, place := &l.calls[i], l.places[i]
		switch {
		case call.Err != nil || call.Code != meta.VA:
		case len(call.Data) == 0:
			if !call.Flags.Letters.Has('W') {
				l.claimed = append(l.claimed, place)
			}
		default:
			value, err := unframe(call.Data, l.names[place])
			if err != nil {
				t.damaged(call.Request.Key, err)
				continue
			}
			found[place] = cache.Found{Value: value, From: cache.Shared}
		}
	}
}

// await waits for the pages that other processes are bringing: twice as long as the bucket usually takes,
// since the others have asked it a moment before, and then have to store them.
func (l *lookup) await(ctx context.Context, t *Tier, found []cache.Found) {
	t.m.waits.Add(float64(len(l.claimed)))
	end := time.Now().Add(2 * t.client.Most())
	pause := time.NewTimer(firstPause)
	defer pause.Stop()
	for wait := firstPause; len(l.claimed) > 0 && time.Now().Add(wait).Before(end); wait *= 2 {
		pause.Reset(wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		l.places = append(l.places[:0], l.claimed...)
		l.makeCalls(t, again)
		l.round(ctx, t, found, end)
	}
}
