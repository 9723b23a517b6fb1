package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version and commit are set by the linker: -ldflags "-X main.version=... -X main.commit=...".
var (
	version = "devel"
	commit  = ""
)

type versionCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// revision is the commit that was built, from the linker flag or else from Go's build information; empty if
// neither is set.
func revision() string {
	if commit != "" {
		return commit
	}
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return ""
}

// Run prints the version.
func (v *versionCmd) Run(p *process) error {
	info := versionInfo{Version: version, Commit: revision(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info.Commit == "" {
		info.Commit = "unknown"
	}
	if v.JSON {
		e := json.NewEncoder(p.stdout)
		e.SetIndent("", "  ")
		return e.Encode(info)
	}
	_, err := fmt.Fprintf(p.stdout, "shale %s (commit %s, %s, %s)\n", info.Version, info.Commit, info.Go, info.Platform)
	return err
}
