package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// thisTree is the name of the system built from the working tree, baseTree that of the other commit.
const (
	thisTree = "shale"
	baseTree = "shale-base"
)

// The programs that are built: Shale, and its server on a slow disk or with a slow bucket.
const (
	shaleProgram = "./cmd/shale"
	slowProgram  = "./bench/slow"
)

// moduleRoot returns the folder of this module, wherever in it the benchmark was started.
func moduleRoot(ctx context.Context) (string, error) {
	file, err := output(ctx, ".", "go", "env", "GOMOD")
	if err == nil && filepath.Base(file) != "go.mod" {
		err = errors.New("this folder is not in Shale's source; start the benchmark there, or give --shale the path of a binary")
	}
	return filepath.Dir(file), err
}

// build builds a program of the module in a folder.
func build(ctx context.Context, module, binary, program string) error {
	args := []string{"build", "-o", binary}
	if commit, err := output(ctx, module, "git", "rev-parse", "HEAD"); err == nil {
		version, err := output(ctx, module, "git", "describe", "--tags", "--always", "--dirty")
		if err != nil {
			version = commit
		}
		args = append(args, "-ldflags", "-X main.version="+version+" -X main.commit="+commit)
	}
	_, err := output(ctx, module, "go", append(args, program)...)
	return err
}

// output runs a command in a folder and returns its output without blanks at the ends.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %.2000s", name, strings.Join(args, " "), err, strings.TrimSpace(complaints.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// withBase checks a commit out in a temporary work tree, calls do there, and removes it.
func withBase(ctx context.Context, ref, work string, do func(tree string) error) (err error) {
	commit, err := output(ctx, ".", "git", "rev-parse", "--verify", ref+"^{commit}")
	if err != nil {
		return fmt.Errorf("--base %s names no commit: %w", ref, err)
	}
	tree := filepath.Join(work, "base-tree")
	if _, err := output(ctx, ".", "git", "worktree", "add", "--detach", tree, commit); err != nil {
		return err
	}
	defer func() {
		// Even after Ctrl-C.
		_, rmErr := output(context.WithoutCancel(ctx), ".", "git", "worktree", "remove", "--force", tree)
		err = errors.Join(err, rmErr)
	}()
	return do(tree)
}
