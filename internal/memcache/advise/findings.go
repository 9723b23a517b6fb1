package advise

import (
	"fmt"
	"strconv"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/memcache/slab"
)

// findings looks at what counters of servers say. What a server does not count gives no finding.
func (r *Report) findings() {
	for _, s := range r.Servers {
		if s.Stats == nil {
			continue
		}
		for _, look := range []func(*Server) *Finding{connections, tooLarge, noMemory, churn, held, disk, diskHeads, diskQueue, moveToDisk} {
			if f := look(s); f != nil {
				if len(r.Servers) > 1 {
					f.Text = s.Addr + ": " + f.Text
				}
				r.Findings = append(r.Findings, *f)
			}
		}
	}
	r.firstArgs()
}

// firstArgs keeps the arguments of the first finding of each topic: the command line has each once.
func (r *Report) firstArgs() {
	seen := map[string]bool{}
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Args != nil && seen[f.Topic] {
			f.Args = nil
		}
		seen[f.Topic] = seen[f.Topic] || f.Args != nil
	}
}

func connections(s *Server) *Finding {
	limit, now := number(s.Settings, "maxconns"), number(s.Stats, "curr_connections")
	refused, stopped := number(s.Stats, "rejected_connections"), number(s.Stats, "listen_disabled_num")
	args := []string{"-c", strconv.FormatInt(2*limit, 10)}
	switch {
	case refused > 0 || stopped > 0:
		return &Finding{"connections", fmt.Sprintf("the server refused %s, and hit its limit of %s (-c) %s. Twice the limit needs as many file descriptors",
			english.Plural(int(refused), "connection", ""), humanize.Comma(limit), english.Plural(int(stopped), "time", "")), args}
	case limit > 0 && float64(now) > 0.8*float64(limit):
		return &Finding{"connections", fmt.Sprintf("%s of at most %s connections (-c) are open", humanize.Comma(now), humanize.Comma(limit)), args}
	}
	return nil
}

func tooLarge(s *Server) *Finding {
	n := number(s.Stats, "store_too_large")
	if n == 0 {
		return nil
	}
	return &Finding{"item limit", fmt.Sprintf("the server refused %s larger than %s bytes (-I). It does not say which: the error log of `shale memcached router` does. -I may be raised up to half of -m",
		english.Plural(int(n), "item", ""), humanize.Comma(int64(s.Config.ItemMax))), nil}
}

func noMemory(s *Server) *Finding {
	n := number(s.Stats, "store_no_memory")
	if n == 0 {
		return nil
	}
	why := "a class had no page and nothing to evict: pages are spread over too many classes, or -m is too small"
	if s.Settings["evictions"] == "off" {
		why = "evictions are off (-M)"
	}
	return &Finding{"out of memory", fmt.Sprintf("the server refused %s for want of memory: %s", english.Plural(int(n), "item", ""), why), nil}
}

func churn(s *Server) *Finding {
	evicted, unread := number(s.Stats, "evictions"), number(s.Stats, "evicted_unfetched")
	if evicted == 0 {
		return nil
	}
	disk := ""
	if number(s.Stats, "extstore_limit_maxbytes") > 0 {
		disk = ". What extstore drops is not in these counters: memcached does not say whether it was ever read"
	}
	return &Finding{"churn", fmt.Sprintf("the server evicted %s, %.0f %% without a single read%s", english.Plural(int(evicted), "item", ""), 100*float64(unread)/float64(evicted), disk), nil}
}

// held looks for a class that keeps pages which it does not need while others evict.
func held(s *Server) *Finding {
	w := s.Waste()
	if number(s.Stats, "evictions") == 0 || float64(w.Held) < worthwhile*float64(s.Memory) {
		return nil
	}
	f := &Finding{"pages held", fmt.Sprintf("%s bytes lie in pages of classes that do not need them, while items are evicted", humanize.Comma(w.Held)), nil}
	if s.Settings["slab_reassign"] == "no" || s.Settings["slab_automove"] == "0" {
		f.Text += ". Moving pages is off"
		f.Args = []string{"-o", "slab_reassign,slab_automove=1"}
	}
	return f
}

func disk(s *Server) *Finding {
	bad := number(s.Stats, "badcrc_from_extstore")
	if bad == 0 {
		return nil
	}
	return &Finding{"extstore", fmt.Sprintf("%s came back from disk with a wrong checksum: the disk, or something that writes to its file", english.Plural(int(bad), "value", "")), nil}
}

func diskHeads(s *Server) *Finding {
	if s.OnDisk == 0 {
		return nil
	}
	ram := int64(0)
	table := s.Config.Table()
	for _, it := range s.Items {
		if it.Size == it.Head+diskPointer {
			ram += int64(it.Count * float64(table.Of(it.Size).Size))
		}
	}
	return &Finding{"extstore", fmt.Sprintf("%s items have their %s bytes on disk and keep %s bytes in memory, %.0f %% of -m: that bounds how much disk can be used",
		humanize.Comma(s.OnDisk), humanize.Comma(s.DiskBytes), humanize.Comma(ram), 100*float64(ram)/float64(s.Memory)), nil}
}

func diskQueue(s *Server) *Finding {
	queue, threads := number(s.Stats, "extstore_io_queue"), max(1, number(s.Settings, "ext_io_threadcount"))
	if queue < 64*threads {
		return nil
	}
	return &Finding{"extstore threads", fmt.Sprintf("%s reads wait for the disk: more threads (ext_threads) let it work on more of them at a time", humanize.Comma(queue)), []string{"-o", "ext_threads=" + strconv.FormatInt(min(32, 4*threads), 10)}}
}

// moveToDisk says what extstore would need, for a server that evicts values which are worth a disk.
func moveToDisk(s *Server) *Finding {
	if number(s.Stats, "extstore_limit_maxbytes") > 0 || number(s.Stats, "evictions") == 0 || s.Config.Sizes != nil {
		return nil // of slab_sizes, the classes for heads may not be known
	}
	var count, bytes, heads float64
	table := s.Config.Table()
	for _, it := range s.Items {
		if it.Size-it.Head >= 512 {
			count += it.Count
			bytes += it.Count * float64(it.Size)
			heads += it.Count * float64(table.Of(it.Head+diskPointer).Size)
		}
	}
	if count == 0 || bytes < 0.5*float64(s.Memory) {
		return nil
	}
	// 80 % of the memory for heads leaves the rest for new items.
	most := 0.8 * float64(s.Memory) / (heads / count) * (bytes / count)
	wbuf := max(4, (int64(s.Config.ItemMax)+slab.Page-1)/slab.Page)
	return &Finding{"extstore", fmt.Sprintf("the server evicts, and values have %.0f bytes on average. On an SSD (ext_path=PATH:SIZE,ext_wbuf_size=%d) each keeps %.0f bytes in memory, so that -m of now serves up to %.1f GB of disk",
		bytes/count, wbuf, heads/count, most/1e9), nil}
}
