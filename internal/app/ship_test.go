package app

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/config"
)

// TestShipAtStop: after a stop the bucket has everything, for a server with another data folder, and the
// first one goes on. Without the setting it has not.
func TestShipAtStop(t *testing.T) {
	for _, on := range []config.Switch{"on", "off"} {
		data, bucket := t.TempDir(), filepath.Join(t.TempDir(), "bucket")
		start := func(dir string) *server {
			return startServerWith(t, dir, func(c *config.Config) { c.Bucket, c.Roles.ShipAtStop = bucket, on })
		}
		first := start(data)
		now := time.Now().Unix()
		for i := range 10 {
			if status, text := first.post(t, "/api/v1/write/graphite", fmt.Sprintf("a.b%d %d %d\n", i, i, now)); status/100 != 2 {
				t.Fatalf("%d %s", status, text)
			}
			if status, text := first.post(t, "/loki/api/v1/push", pushBody(fmt.Sprint("line ", i))); status/100 != 2 {
				t.Fatalf("%d %s", status, text)
			}
		}
		must(t, first.stop())
		for name, dir := range map[string]string{"another": t.TempDir(), "the first": data} {
			s := start(dir)
			_, found := s.get(t, "/metrics/find?query=a.*")
			_, lines := s.get(t, "/loki/api/v1/query_range?query=%7Bapp=%22d%22%7D")
			has := strings.Count(found, `"leaf":1`) == 10 && strings.Count(lines, "line ") == 10
			if want := on.On() || name == "the first"; has != want {
				t.Errorf("%s, ship-at-stop %s: got %v, expected %v: %s %.300s", name, on, has, want, found, lines)
			}
			must(t, s.stop())
		}
	}
}
