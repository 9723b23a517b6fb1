package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/dustin/go-humanize/english"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/shaledb/shale/internal/app"
	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/check"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/bucket/provider"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/repair"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/compact"
	"github.com/shaledb/shale/internal/store/retention"
)

type inspectCatalogueCmd struct {
	bucketArg
	Check   bool   `help:"Read every live block and compare it with its commit record."`
	Repair  bool   `help:"Check, and then ask about each repair that is possible. What is damaged is set aside, nothing is deleted. A server may run meanwhile."`
	Yes     bool   `help:"With --repair: do all repairs without asking."`
	DataDir string `xor:"memory" type:"existingdir" placeholder:"DIR" help:"Data folder of a server that uses the bucket: the commit records that it remembers are compared, too. Default: the folder that the bucket lies in, if it is a data folder."`
	// NoDataDir is not the default of a missing DataDir: a rebuilt record next to a remembered one gives a block
	// two records.
	NoDataDir bool `xor:"memory" help:"With --repair: rebuild lost commit records although no data folder is known that may remember them."`
}

// rememberedDir is the folder of a data folder in which a server keeps copies of commit records.
const rememberedDir = "remembered"

// memoryOf opens the memory of a data folder; nil: there is none.
func memoryOf(dataDir string) (catalog.Reader, error) {
	dir := filepath.Join(dataDir, rememberedDir)
	if _, err := os.Stat(dir); err != nil {
		return nil, nil
	}
	return bucketfs.New(vfs.Default, dir)
}

// Run lists the contents of the bucket, reports what is wrong, and repairs it if asked.
func (i *inspectCatalogueCmd) Run(ctx context.Context, p *process) error {
	if (i.Yes || i.NoDataDir) && !i.Repair {
		return usageError{fmt.Errorf("--yes and --no-data-dir need --repair")}
	}
	b, l, _, err := i.open()
	if err != nil {
		return err
	}
	o := compact.InspectOptions{Check: i.Check || i.Repair}
	dataDir := i.DataDir
	if dataDir == "" && l.Kind == location.Folder {
		dataDir = filepath.Dir(filepath.Clean(l.Dir))
	}
	if dataDir != "" {
		if o.Memory, err = memoryOf(dataDir); err != nil {
			return err
		}
	}
	if i.DataDir != "" && o.Memory == nil {
		return fmt.Errorf("%s has no folder %s, in which a server remembers commit records", i.DataDir, rememberedDir)
	}
	found, err := compact.Inspect(ctx, p.stdout, b, o)
	if err != nil {
		return err
	}
	wrong, withheld := found.Wrong, 0
	if i.Repair && wrong > 0 {
		var repairs []repair.Step
		repairs, withheld = found.Repairs(ctx, b, time.Now(), i.NoDataDir)
		done, err := repairAll(ctx, p, repairs, i.Yes)
		if err != nil {
			return err
		}
		if done > 0 {
			fmt.Fprintf(p.stdout, "\nafter %s:\n\n", english.Plural(done, "repair", ""))
			if found, err = compact.Inspect(ctx, p.stdout, b, o); err != nil {
				return err
			}
			wrong = found.Wrong
		}
	}
	if withheld > 0 {
		return fmt.Errorf("%s wrong in %s; %s withheld, since a server may remember the lost commit records: name its data folder with --data-dir, or add --no-data-dir if that is lost, too",
			english.Plural(wrong, "thing", ""), l, english.Plural(withheld, "repair", ""))
	}
	if wrong > 0 {
		return fmt.Errorf("%s wrong in %s", english.Plural(wrong, "thing", ""), l)
	}
	return nil
}

// bucketArg names a bucket on the command line.
type bucketArg struct {
	Bucket string `arg:"" placeholder:"DIR|URL" help:"Bucket: a folder, or a URL such as s3://NAME/PREFIX?region=REGION."`
}

// open opens the bucket. A folder must exist.
func (a *bucketArg) open() (bucket.Bucket, location.Location, provider.Unfinished, error) {
	l, err := location.Parse(a.Bucket)
	if err != nil {
		return nil, l, nil, usageError{fmt.Errorf("<bucket>: %w", err)}
	}
	if l.Kind == location.Folder {
		info, err := os.Stat(l.Dir)
		switch {
		case err != nil:
			return nil, l, nil, usageError{fmt.Errorf("<bucket>: %w", err)}
		case !info.IsDir():
			return nil, l, nil, usageError{fmt.Errorf("<bucket>: %s is a file, not a folder", l.Dir)}
		}
	}
	b, unfinished, err := provider.Open(vfs.Default, l) // opening changes nothing before the first put
	return b, l, unfinished, err
}

type inspectBucketCmd struct {
	bucketArg
	Check bool `help:"Test whether the store keeps what Shale relies on, with objects below check/ that are removed afterwards. A server may run meanwhile."`
	JSON  bool `name:"json" help:"Print one JSON object."`
}

// bucketReport is the output of the command.
type bucketReport struct {
	Bucket string `json:"bucket"`
	// Steps are those of the check.
	Steps []stepReport `json:"steps,omitempty"`
	// Folders count the objects by the first part of their names.
	Folders    []folderReport `json:"folders,omitempty"`
	Unfinished []uploadReport `json:"unfinished_uploads,omitempty"`
}

type stepReport struct {
	Step    string  `json:"step"`
	OK      bool    `json:"ok"`
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"`
}

type folderReport struct {
	Folder  string `json:"folder"`
	Objects int64  `json:"objects"`
	Bytes   int64  `json:"bytes"`
}

type uploadReport struct {
	Object string    `json:"object"`
	Begun  time.Time `json:"begun"`
}

// Run counts the objects of a bucket, or checks the store.
func (i *inspectBucketCmd) Run(ctx context.Context, p *process) error {
	b, l, unfinished, err := i.open()
	if err != nil {
		return err
	}
	report := bucketReport{Bucket: l.String()}
	var failed error
	if i.Check {
		depth := check.Thorough
		if l.Kind == location.Folder {
			depth = check.Usual
		}
		failed = check.Run(ctx, b, depth, func(s check.Step) {
			r := stepReport{Step: s.Name, OK: s.Err == nil, Seconds: s.Took.Seconds()}
			if s.Err != nil {
				r.Error = s.Err.Error()
			}
			report.Steps = append(report.Steps, r)
		})
	} else if report.Folders, err = countObjects(ctx, b); err != nil {
		return err
	}
	if unfinished != nil && failed == nil {
		err = unfinished(ctx, func(name string, begun time.Time) {
			report.Unfinished = append(report.Unfinished, uploadReport{name, begun.UTC()})
		})
	}
	if i.JSON {
		out := json.NewEncoder(p.stdout)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		err = errors.Join(err, out.Encode(report))
	} else {
		err = errors.Join(err, report.print(p))
	}
	return errors.Join(failed, err)
}

func countObjects(ctx context.Context, b bucket.Bucket) ([]folderReport, error) {
	counts := map[string]folderReport{}
	err := b.List(ctx, "", func(name string, size int64) error {
		folder, _, below := strings.Cut(name, "/")
		if below {
			folder += "/"
		}
		r := counts[folder]
		counts[folder] = folderReport{folder, r.Objects + 1, r.Bytes + size}
		return nil
	})
	folders := make([]folderReport, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		folders = append(folders, counts[name])
	}
	return folders, err
}

func (r *bucketReport) print(p *process) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "bucket\t%s\n", r.Bucket)
	for _, s := range r.Steps {
		result := "ok"
		if !s.OK {
			result = "FAILED: " + strings.ReplaceAll(s.Error, "\n", "; ")
		}
		fmt.Fprintf(w, "%s\t%s, %s\n", s.Step, result, time.Duration(s.Seconds*float64(time.Second)).Round(time.Millisecond))
	}
	for _, f := range r.Folders {
		fmt.Fprintf(w, "%s\t%s, %s\n", f.Folder, english.Plural(int(f.Objects), "object", ""), config.Size(f.Bytes))
	}
	if len(r.Steps) == 0 && len(r.Folders) == 0 {
		fmt.Fprintln(w, "objects\tnone")
	}
	const most = 20
	for _, u := range r.Unfinished[:min(most, len(r.Unfinished))] {
		fmt.Fprintf(w, "unfinished upload\t%s, begun %s\n", u.Object, u.Begun.Format(time.RFC3339))
	}
	if n := len(r.Unfinished); n > most {
		fmt.Fprintf(w, "unfinished uploads\t%d more; --json lists all\n", n-most)
	}
	return w.Flush()
}

type inspectRetentionCmd struct {
	Bucket     string `arg:"" optional:"" placeholder:"DIR|URL" help:"Bucket: a folder, or a URL. Default: the one of the settings."`
	ConfigFile string `name:"config" short:"c" placeholder:"FILE" help:"YAML file with the settings of the server. Its environment variables count, too."`
	Tenant     string `placeholder:"NAME" help:"Tenant to look at. Default: all; with --series: anonymous."`
	Signal     string `enum:"metrics,logs" default:"metrics" placeholder:"SIGNAL" help:"With --series: metrics or logs."`
	Series     string `placeholder:"LABELS" help:"Show which rule applies to this series, such as up{job=\"node\"}. Reads no bucket."`
	JSON       bool   `name:"json" help:"Print JSON."`
}

// Run lists what the bucket holds of each rule, or shows the rule of a series.
func (i *inspectRetentionCmd) Run(ctx context.Context, p *process) error {
	c, _, err := config.Load(config.Sources{File: p.configFile(i.ConfigFile), Environ: p.environ})
	if err != nil {
		return usageError{err}
	}
	rules, err := retention.Compile(c.RetentionRules, c.Retention)
	if err == nil && c.TenantsFile != "" {
		var tenants *config.Tenants
		if tenants, err = app.ReadTenants(c.TenantsFile, &c); err == nil {
			rules = tenants.Retention()
		}
	}
	if err != nil {
		return usageError{err}
	}
	if i.Series != "" {
		return i.showRule(p, rules)
	}
	from := bucketArg{i.Bucket}
	if from.Bucket == "" {
		l, err := c.BucketLocation()
		if err != nil {
			return usageError{err}
		}
		from.Bucket = l.String()
	}
	b, _, _, err := from.open()
	if err != nil {
		return err
	}
	return compact.InspectRetention(ctx, p.stdout, b, compact.RetentionOptions{Rules: rules, Tenant: i.Tenant, JSON: i.JSON, Now: time.Now().UnixNano()})
}

// showRule prints the rule that counts for a series.
func (i *inspectRetentionCmd) showRule(p *process, rules *retention.Rules) error {
	parsed, err := parser.NewParser(parser.Options{}).ParseMetric(i.Series)
	if err != nil {
		return usageError{fmt.Errorf("--series: %w", err)}
	}
	var b model.LabelsBuilder
	parsed.Range(func(l labels.Label) { b.Add([]byte(l.Name), []byte(l.Value)) })
	series, err := b.Append(nil)
	if err != nil {
		return usageError{fmt.Errorf("--series: %w", err)}
	}
	signal, tenant := model.Metrics, i.Tenant
	if i.Signal == model.Logs.String() {
		signal = model.Logs
	}
	if tenant == "" {
		tenant = model.DefaultTenant
	}
	policy := rules.Policy(tenant, signal)
	n := policy.Number(series)
	rule, _ := rules.Rule(n)
	if i.JSON {
		e := json.NewEncoder(p.stdout)
		e.SetEscapeHTML(false)
		return e.Encode(struct {
			Number int `json:"rule"`
			retention.Rule
		}{n + 1, rule})
	}
	_, err = fmt.Fprintf(p.stdout, "rule %d: %s\n", n+1, rule)
	return err
}
