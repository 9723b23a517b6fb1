package carbonexplain

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/shaledb/shale/internal/terminal"
)

// Group are the commands about Graphite.
type Group struct {
	Explain Command `cmd:"" help:"Explain what each setting of carbon becomes in Shale."`
}

// Command is the command line. Kong fills it.
type Command struct {
	File string `arg:"" type:"existingfile" help:"The carbon.conf of the fleet. Rule files and policies in its folder are explained, too."`
	JSON bool   `name:"json" help:"Print the report as JSON."`
}

// Help teaches the command by an example.
func (*Command) Help() string {
	return `Each setting has a verdict. kept: Shale behaves so, or takes the file as it is. other: a setting of Shale does it. not needed: what it is for
does not exist here. missing: Shale does not do it. unknown: carbon has no such setting.

    shale graphite explain /opt/graphite/conf/carbon.conf`
}

// ErrBadFile says that a file next to carbon.conf cannot be read. The report shows the error.
var ErrBadFile = errors.New("a file has errors")

// Run writes the report.
func (c *Command) Run(out io.Writer) error {
	r, err := Explain(c.File)
	if err != nil {
		return err
	}
	if c.JSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		_, err = io.WriteString(out, terminal.EscapeLines(r.lines()))
	}
	if err != nil {
		return err
	}
	for _, f := range r.Files {
		if f.Error != "" {
			return ErrBadFile
		}
	}
	return nil
}
