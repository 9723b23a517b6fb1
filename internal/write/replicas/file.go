package replicas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/model"
)

// saveEvery is how often the newest times are saved. An election is saved at once.
const saveEvery = 10 * time.Second

// maxFile bounds the file: each of the clusters takes about 150 bytes.
const maxFile = 64 << 20

// row is a cluster in the file. The time at which the leader wrote is not there: no replica can write while
// this process is down, so the leader has the whole time again.
type row struct {
	Tenant  string `json:"tenant"`
	Cluster string `json:"cluster"`
	Replica string `json:"replica"`
	Newest  int64  `json:"newest"`
	Until   int64  `json:"until"`
}

// Open returns the table of a file, empty if there is no file. A file that cannot be read does not prevent a
// start: all that is lost is the leaders, so the next replicas that write are elected.
func Open(o Options) (*Table, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	f := promauto.With(o.Registerer)
	t := &Table{o: o, tenants: map[string]map[string]*Cluster{}, holding: map[*Cluster]struct{}{}, elected: make(chan struct{}, 1), metrics: &metrics{
		elections:  f.NewCounter(prometheus.CounterOpts{Name: "shale_ha_elections_total", Help: "Elections of a replica of an HA pair, the first of each pair included."}),
		other:      f.NewCounter(prometheus.CounterOpts{Name: "shale_ha_deduplicated_samples_total", Help: "Samples that were not stored because another replica of the HA pair is elected."}),
		repeated:   f.NewCounter(prometheus.CounterOpts{Name: "shale_ha_repeated_samples_total", Help: "Samples of a newly elected replica that were not stored because they are not newer than those of the replica before."}),
		clusters:   f.NewGauge(prometheus.GaugeOpts{Name: "shale_ha_clusters", Help: "HA pairs that are known, of all tenants."}),
		evicted:    f.NewCounter(prometheus.CounterOpts{Name: "shale_ha_spare_evicted_requests_total", Help: "Kept requests of replicas that are not elected that were forgotten for lack of memory; an election soon after leaves a gap."}),
		gaveUp:     f.NewCounter(prometheus.CounterOpts{Name: "shale_ha_spare_given_up_requests_total", Help: "Kept requests of elected replicas that were forgotten since 30 tries to store them failed."}),
		tookOver:   f.NewCounter(prometheus.CounterOpts{Name: "shale_ha_spare_stored_requests_total", Help: "Kept requests of replicas that were stored because their replica was elected."}),
		spareBytes: f.NewGauge(prometheus.GaugeOpts{Name: "shale_ha_spare_bytes", Help: "Memory of kept requests of replicas that are not elected."}),
		saved:      f.NewGauge(prometheus.GaugeOpts{Name: "shale_ha_save_success", Help: "1 if the file of elected replicas was last saved without an error; while it is 0, a restart may elect another replica."}),
	}}
	t.metrics.saved.Set(1)
	if o.ClusterLabel == o.ReplicaLabel || o.ClusterLabel == "" || o.ReplicaLabel == "" {
		return nil, fmt.Errorf("%w: ha.cluster-label and ha.replica-label: expected two names, got %q and %q", model.ErrInvalid, o.ClusterLabel, o.ReplicaLabel)
	}
	if o.File == "" {
		return t, nil
	}
	rows, err := t.read()
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		o.Logger.Error("cannot read the elected replicas of HA pairs: the next ones that write are elected", "file", o.File, "err", err)
	}
	now := o.Now()
	for _, r := range rows {
		if c, _ := t.addLocked(r.Tenant, r.Cluster, now); c != nil {
			*c = Cluster{replica: r.Replica, seen: now, newest: r.Newest, until: r.Until}
		}
	}
	return t, nil
}

func (t *Table) read() (rows []row, err error) {
	f, err := t.o.FS.Open(t.o.File)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err == nil {
		err = json.Unmarshal(text, &rows)
	}
	return rows, err
}

// Run saves the table until the context ends, and then once more.
func (t *Table) Run(ctx context.Context) {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			t.saveAndLog()
			return
		case <-tick.C:
			t.mu.Lock()
			t.forgetLocked(t.o.Now())
			t.mu.Unlock()
		case <-t.elected:
		}
		t.saveAndLog()
	}
}

func (t *Table) saveAndLog() {
	err := t.save()
	if err != nil {
		t.metrics.saved.Set(0)
		t.o.Logger.Error("cannot save the elected replicas of HA pairs", "file", t.o.File, "err", err)
		return
	}
	t.metrics.saved.Set(1)
}

// save replaces the file if anything has changed.
func (t *Table) save() (err error) {
	t.mu.Lock()
	if !t.unsaved || t.o.File == "" {
		t.mu.Unlock()
		return nil
	}
	rows := make([]row, 0, t.clusters)
	for tenant, of := range t.tenants {
		for name, c := range of {
			rows = append(rows, row{tenant, name, c.replica, c.newest, c.until})
		}
	}
	t.unsaved = false
	t.mu.Unlock()
	defer func() {
		if err != nil {
			t.mu.Lock()
			t.unsaved = true
			t.mu.Unlock()
		}
	}()
	text, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	fs, next := t.o.FS, t.o.File+".new"
	f, err := fs.Create(next, "replicas")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(next, t.o.File); err != nil {
		return err
	}
	d, err := fs.OpenDir(fs.PathDir(t.o.File))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
