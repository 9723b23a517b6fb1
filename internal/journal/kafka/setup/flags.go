package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/bucket/provider"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/store/topics"
	"github.com/shaledb/shale/internal/terminal"
)

// Group has the subcommands of `shale kafka`.
type Group struct {
	Create Create     `cmd:"" help:"Make the topic that carries writes, and record it in the bucket."`
	Check  Check      `cmd:"" help:"Check the settings of the topic, and whether Kafka has deleted records that are not in the bucket."`
	Accept AcceptLoss `cmd:"" name:"accept-loss" help:"Let a stopped partition continue without records that are lost or cannot be read."`
	Double Double     `cmd:"" help:"Move to a new topic with twice as many partitions, while everything runs."`
	Adopt  Adopt      `cmd:"" help:"Switch to another topic: one made with other tools, a larger one, or a new one after a loss."`
}

// UsageError is a mistake in the command line, the environment or the file of settings.
type UsageError struct{ error }

// Unwrap returns the mistake.
func (e UsageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// flags are those of all subcommands. Settings have the names that they have for serve, so that one file is
// for all.
type flags struct {
	ConfigFile string `name:"config" short:"c" placeholder:"FILE" help:"YAML file with settings, such as that of the server."`
	Bucket     string `name:"bucket" placeholder:"DIR|URL" help:"Bucket of the installation: it records which topics carry writes."`
	JSON       bool   `name:"json" help:"Print the report as JSON."`

	config.Kafka `embed:""`
}

// place is where a command works.
type place struct {
	connection kafka.Connection
	topic      string
	bucket     bucket.Bucket
	epochs     []topics.Epoch
	stdout     io.Writer
	json       bool
	version    int // of what processes can read
}

// open reads the settings and the epochs of the bucket.
func (f *flags) open(ctx context.Context, k *kong.Context, environ []string, stdout io.Writer) (*place, error) {
	from := config.Sources{File: f.ConfigFile, Environ: environ, Flags: config.Config{Bucket: f.Bucket, Kafka: f.Kafka}}
	for _, at := range k.Path {
		if at.Flag != nil && !at.Resolved {
			from.FlagsSet = append(from.FlagsSet, at.Flag.Name)
		}
	}
	for _, kv := range environ {
		if name, value, _ := strings.Cut(kv, "="); from.File == "" && name == config.ConfigEnv {
			from.File = value
		}
	}
	c, _, err := config.Load(from)
	switch {
	case err != nil:
		return nil, UsageError{err}
	case c.Kafka.Brokers == "":
		return nil, usage("kafka.brokers must name at least one broker, such as --kafka.brokers 127.0.0.1:9092")
	case c.Bucket == "":
		return nil, usage("bucket must be set: roles share it, and it records which topics carry writes")
	}
	l, err := location.Parse(c.Bucket)
	if err != nil {
		return nil, usage("bucket: %w", err)
	}
	b, _, err := provider.Open(vfs.Default, l)
	if err != nil {
		return nil, err
	}
	p := &place{connection: c.Kafka.Connection(), topic: c.Kafka.Topic, bucket: b, stdout: stdout, json: f.JSON, version: c.Kafka.JournalVersion}
	p.epochs, err = topics.List(ctx, b)
	return p, err
}

// report is what the commands print.
type report struct {
	*kafka.Topic
	// Epoch is the number of the epoch that the topic is recorded as; 0: it is not recorded.
	Epoch    uint64          `json:"epoch"`
	Findings []kafka.Finding `json:"findings"`
	// Extents has the state of each partition, and nothing after create and adopt.
	Extents []extent `json:"extents,omitempty"`
}

// print writes the report.
func (p *place) print(r *report) error {
	if p.json {
		if r.Findings == nil {
			r.Findings = []kafka.Finding{}
		}
		e := json.NewEncoder(p.stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	rows := [][]string{
		{"topic", r.Name},
		{"id", r.ID},
		{"epoch", epochText(r.Epoch)},
		{"partitions", fmt.Sprint(r.Partitions)},
		{"replicas", fmt.Sprintf("%d, on %s", r.Replicas, english.Plural(int(r.Brokers), "broker", ""))},
		{"retention", retention(r.Topic)},
	}
	if err := terminal.Table(p.stdout, rows); err != nil {
		return err
	}
	if len(r.Extents) > 0 {
		if _, err := fmt.Fprintln(p.stdout); err != nil {
			return err
		}
		if err := terminal.Table(p.stdout, extentRows(r.Extents)); err != nil {
			return err
		}
	}
	for _, f := range r.Findings {
		level := "warning"
		switch {
		case f.Refused:
			level = "refused"
		case f.Note:
			level = "note"
		}
		if _, err := fmt.Fprintf(p.stdout, "\n%s: %s = %s\n    %s\n", level, f.Setting, f.Value, f.Why); err != nil {
			return err
		}
	}
	return nil
}

func epochText(epoch uint64) string {
	if epoch == 0 {
		return "not recorded"
	}
	return fmt.Sprint(epoch)
}

func retention(t *kafka.Topic) string {
	ms := t.Settings["retention.ms"]
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/int64(time.Millisecond) {
		return ms + " ms"
	}
	return config.Duration(n * int64(time.Millisecond)).String()
}

// refusal is the error of a topic that no role uses as it is.
func refusal(topic string, all []kafka.Finding) error {
	refused := kafka.Refused(all)
	if len(refused) == 0 {
		return nil
	}
	f := refused[0]
	more := ""
	if len(refused) > 1 {
		more = fmt.Sprintf(" (and %d more)", len(refused)-1)
	}
	return errors.New(strings.TrimSpace(fmt.Sprintf("topic %s is refused: %s = %s: %s%s", topic, f.Setting, f.Value, f.Why, more)))
}
