package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/shaledb/shale/internal/repair"
)

// confirm asks on standard output and reads the reply from standard input. Only y and yes mean yes.
func confirm(p *process, question string) bool {
	fmt.Fprintf(p.stdout, "%s [y/N] ", question)
	if p.replies == nil {
		if p.stdin == nil {
			p.stdin = strings.NewReader("")
		}
		p.replies = bufio.NewReader(p.stdin)
	}
	line, err := p.replies.ReadString('\n')
	if err != nil {
		fmt.Fprintln(p.stdout)
		if !errors.Is(err, io.EOF) {
			return false
		}
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true
	}
	return false
}

// repairAll asks about each step and does it. It returns how many were done.
func repairAll(ctx context.Context, p *process, steps []repair.Step, yes bool) (done int, err error) {
	for _, r := range steps {
		fmt.Fprintf(p.stdout, "\n%s: %s\n  repair: %s\n", r.Object, strings.ReplaceAll(r.Why, "\n", "; "), r.Action)
		if r.Loss != "" {
			fmt.Fprintf(p.stdout, "  queries will lack: %s\n", r.Loss)
		}
		if !yes && !confirm(p, "Repair it?") {
			fmt.Fprintln(p.stdout, "left as it is")
			continue
		}
		err := r.Do(ctx)
		if errors.Is(err, repair.ErrOutdated) {
			fmt.Fprintf(p.stdout, "left as it is: %v\n", err)
			continue
		}
		if err != nil {
			return done, fmt.Errorf("repair %s: %w", r.Object, err)
		}
		fmt.Fprintln(p.stdout, "repaired")
		done++
	}
	return done, nil
}
