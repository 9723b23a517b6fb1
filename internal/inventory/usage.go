package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/shaledb/shale/internal/plot"
	"github.com/shaledb/shale/internal/terminal"
	"github.com/shaledb/shale/internal/usage"
)

// Usage has the flags of `shale usage`.
type Usage struct {
	From string `placeholder:"DAY" help:"First day, in UTC, such as 2026-11-01. Default: --to."`
	To   string `placeholder:"DAY" help:"Last day. Default: today."`
	Only string `placeholder:"NAME" help:"Show one tenant only."`
	JSON bool   `name:"json" help:"Print the report of the server as JSON."`
	CSV  bool   `name:"csv" help:"Print the report as CSV."`
	Server
}

// Help teaches the command by examples.
func (*Usage) Help() string {
	return `What have tenants used today, and what does it cost?

    shale usage

Keep the account of a month as a table:

    shale usage --from 2026-11-01 --to 2026-11-30 --csv > november.csv

The server needs a token with the right admin: --token-file. docs/usage.md explains the columns.`
}

// Validate returns what is wrong with the flags.
func (c *Usage) Validate() error {
	if c.JSON && c.CSV {
		return fmt.Errorf("--json and --csv: expected one of them")
	}
	return c.Server.Validate()
}

// Run asks the server and prints a table.
func (c *Usage) Run(ctx context.Context, out io.Writer) error {
	server, ctx, cancel, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	form := url.Values{}
	for name, value := range map[string]string{"from": c.From, "to": c.To, "tenant": c.Only} {
		if value != "" {
			form.Set(name, value)
		}
	}
	if c.CSV {
		form.Set("format", "csv")
	}
	body, err := server.Get(ctx, "api/v1/usage", form)
	if err != nil {
		return err
	}
	if c.CSV || c.JSON {
		_, err := out.Write(body)
		return err
	}
	var r usage.Report
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("reading the report: %w", err)
	}
	rows := [][]string{{"TENANT", "SERIES", "SAMPLES", "LINES", "STORED", "QUERIES", "READ", "CACHE", "DOLLARS"}}
	dollars := 0.0
	for i := range r.Tenants {
		t := &r.Tenants[i]
		dollars += t.Dollars
		rows = append(rows, []string{
			string(terminal.Escape(nil, []byte(t.Tenant))), strconv.FormatInt(t.Series, 10), strconv.FormatInt(t.Samples, 10), strconv.FormatInt(t.Lines, 10),
			plot.Bytes(float64(t.StoredBytes)), strconv.FormatInt(t.Queries, 10), plot.Bytes(float64(t.BytesRead)), fmt.Sprintf("%.1f %%", 100*t.CacheShare), fmt.Sprintf("%.4f", t.Dollars),
		})
	}
	if len(r.Tenants) > 0 {
		if err := terminal.Table(out, rows); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "%s to %s, days with accounts: %d; tenants: %d; %.4f dollars\n", r.From, r.To, r.Days, len(r.Tenants), dollars)
	return err
}
