package config

import (
	"fmt"
	"strconv"
	"strings"
)

// YAML returns a file that gives this configuration, with the origin of each value in a comment.
func (c *Config) YAML(o Origins) string {
	var b strings.Builder
	group := ""
	for _, s := range Settings() {
		name, indent := s.Name, ""
		if g, rest, ok := strings.Cut(s.Name, "."); ok {
			name, indent = rest, "  "
			if g != group {
				fmt.Fprintf(&b, "%s:\n", g)
				group = g
			}
		}
		text := s.Text(c)
		if !s.isList(c) || text == "" {
			text = quote(text)
		}
		fmt.Fprintf(&b, "%s%s: %s", indent, name, text)
		if from := o[s.Name]; from != "" {
			fmt.Fprintf(&b, " # %s", from)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// quote returns a text in the form that YAML parses as the same text: bare if all letters are harmless.
func quote(s string) string {
	harmless := s != ""
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("./:%-_", r):
		default:
			harmless = false
		}
	}
	if harmless && s[0] != '-' && s[0] != ':' && s[0] != '%' && s[len(s)-1] != ':' {
		return s
	}
	return strconv.Quote(s)
}

// Table returns the settings as a Markdown table, for docs/operations.md.
func Table() string {
	var b strings.Builder
	b.WriteString("| flag and key | environment | default | what it does |\n|---|---|---|---|\n")
	for _, s := range Settings() {
		def := "(empty)"
		if s.Default != "" {
			def = "`" + s.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", s.Name, s.Env, def, strings.ReplaceAll(s.Help, "|", "\\|"))
	}
	return b.String()
}
