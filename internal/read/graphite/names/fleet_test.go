package names

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// fleet returns about n names of eight nodes: prod, a data centre, a service, a host, a plugin, an instance,
// a metric and a statistic. Hosts of a service have the same metrics, except that one in fifty runs
// containers with names of their own.
func fleet(n int) []string {
	r := rand.New(rand.NewPCG(1, 2))
	templates := make([][]string, 60)
	for s := range templates {
		var t []string
		for c := range 8 {
			for _, state := range []string{"user", "system", "idle", "iowait", "steal", "nice"} {
				t = append(t, fmt.Sprintf("cpu.cpu%d.%s.value", c, state))
			}
		}
		for d := range 1 + s%4 {
			for _, m := range []string{"ops", "bytes", "time", "merged"} {
				t = append(t, fmt.Sprintf("disk.sd%c.%s.read", 'a'+d, m), fmt.Sprintf("disk.sd%c.%s.write", 'a'+d, m))
			}
		}
		for _, m := range []string{"octets", "packets", "errors", "dropped"} {
			t = append(t, "net.eth0."+m+".rx", "net.eth0."+m+".tx", "net.eth1."+m+".rx", "net.eth1."+m+".tx")
		}
		for m := range 25 + s%20 {
			for _, stat := range []string{"count", "mean", "p50", "p99"} {
				t = append(t, fmt.Sprintf("app.handler%d.request%d.%s", m%5, m, stat))
			}
		}
		templates[s] = t
	}
	out := make([]string, 0, n+500)
	for host := 0; len(out) < n; host++ {
		s := r.IntN(len(templates))
		parent := fmt.Sprintf("prod.dc%d.%s%02d.%s-%05d.", r.IntN(8), []string{"web", "db", "kwcache", "queue", "batch"}[s%5], s, []string{"host", "vm"}[host%2], host)
		for _, m := range templates[s] {
			out = append(out, parent+m)
		}
		if host%50 == 0 {
			for range 20 {
				id := fmt.Sprintf("%012x", r.Uint64()>>16)
				out = append(out, parent+"docker."+id+".cpu.usage", parent+"docker."+id+".memory.rss")
			}
		}
	}
	slices.Sort(out)
	return out[:n]
}

// fleetGlobs is the mixed set of globs: exact names, levels, literal ends, sets, words, and 300 alternatives.
func fleetGlobs(all []string) map[string]string {
	exact := all[len(all)/3]
	var hosts []byte
	for i := range 300 {
		hosts = fmt.Appendf(hosts, "host-%05d,", 2*i)
	}
	return map[string]string{
		"exact":       exact,
		"top":         "*",
		"level":       "prod.*",
		"hosts":       "prod.dc3.web05.*",
		"middle":      "prod.dc3.*.*.cpu.cpu0.idle.value",
		"literal end": "*.*.*.*.cpu.cpu0.idle.value",
		"set":         "prod.*.db0[0-9].host*[02468].{cpu,net}.*",
		"word":        "*.*.*kw*.*",
		"word deep":   "prod.dc1.*.*.*.*handler3*.*.p99",
		"brace":       "prod.*.*.{" + string(hosts) + "}.cpu.cpu1.user.value",
		"deep":        "prod.dc1.kwcache02.**.p99",
		"none at all": "*.*.*.*.*.*.nothing.*",
		"class":       "prod.dc[1-3].queue*.vm-*1.disk.sd[ab].bytes.read",
	}
}
