package promql

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

func TestFeatures(t *testing.T) {
	for text, ok := range map[string]bool{
		"": true, "promql-duration-expr": true, strings.Join(known(), ","): true,
		"exemplar-storage": false, "promql-experimental-functions,": false, "promql-experimental-functions, promql-duration-expr": false,
	} {
		var f Features
		if err := f.UnmarshalText([]byte(text)); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// An expression that needs a feature is refused with the name of the setting, and taken once it is on.
func TestFeatureErrors(t *testing.T) {
	for text, want := range map[string]string{
		"mad_over_time(up[5m])": `1:1: parse error: function "mad_over_time" is not enabled (--query.enable-feature=promql-experimental-functions)`,
		"info(up)":              `1:1: parse error: function "info" is not enabled (--query.enable-feature=promql-experimental-functions)`,
		"limitk(1, up)":         "1:1: parse error: limitk() is experimental and must be enabled with --query.enable-feature=promql-experimental-functions",
		"rate(up[5m] anchored)": "1:6: parse error: anchored modifier is experimental and not enabled (--query.enable-feature=promql-extended-range-selectors)",
		"up smoothed":           "1:1: parse error: smoothed modifier is experimental and not enabled (--query.enable-feature=promql-extended-range-selectors)",
		"up + fill(0) up":       "1:1: parse error: binop fill modifiers are experimental and not enabled (--query.enable-feature=promql-binop-fill-modifiers)",
		"nothing(up)":           `1:1: parse error: unknown function with name "nothing"`,
		"up[5m * 2]":            "",
	} {
		_, err := Features("").Parser().ParseExpr(text)
		if got := errorText(err); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		_, err = Features(strings.Join(known(), ",")).Parser().ParseExpr(text)
		_, wrong := err.(parser.ParseErrors)
		if wrong != strings.HasPrefix(text, "nothing") {
			t.Errorf("%s with all features: %v", text, err)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
