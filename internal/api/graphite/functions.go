package graphite

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// Function describes a function that targets may call, in the shape of graphite-web.
type Function struct {
	Name        string  `json:"name"`
	Signature   string  `json:"function"` // sumSeries(*seriesLists)
	Description string  `json:"description"`
	Module      string  `json:"module"`
	Group       string  `json:"group"`
	Params      []Param `json:"params"`
	// Pie says that the function makes one number of a series, for pie charts.
	Pie bool `json:"-"`
}

// Param is a parameter of a function.
type Param struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Required bool   `json:"required,omitempty"`
	// Default is JSON. An infinity is written 1e9999, as graphite-web writes it.
	Default     json.RawMessage `json:"default,omitempty"`
	Multiple    bool            `json:"multiple,omitempty"`
	Options     []any           `json:"options,omitempty"`
	Suggestions []any           `json:"suggestions,omitempty"`
}

// functions serves all functions, or those of a group, by name, or by group and name.
func (h *Handler) functions(r *api.Request) (*api.Response, error) {
	byName := make(map[string]Function)
	byGroup := make(map[string]map[string]Function)
	group, chosen := r.Form.Get("group"), r.Form.Has("group")
	for _, f := range h.o.Functions {
		if f.Pie != (r.Form.Get("type") == "pie") || chosen && f.Group != group {
			continue
		}
		byName[f.Name] = f
		if byGroup[f.Group] == nil {
			byGroup[f.Group] = make(map[string]Function)
		}
		byGroup[f.Group][f.Name] = f
	}
	if grouped := strings.ToLower(r.Form.Get("grouped")); grouped == "1" || grouped == "true" {
		return jsonResponse(byGroup)
	}
	return jsonResponse(byName)
}

// function serves one function.
func (h *Handler) function(r *api.Request) (*api.Response, error) {
	name := r.PathValue("name")
	if name == "" {
		return h.functions(r)
	}
	for _, f := range h.o.Functions {
		if f.Name == name && f.Pie == (r.Form.Get("type") == "pie") {
			return jsonResponse(f)
		}
	}
	return nil, failed(http.StatusNotFound, fmt.Errorf("Function not found: %s", name))
}

// jsonResponse returns a small value as JSON.
func jsonResponse(v any) (*api.Response, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: encoding a response: %w", model.ErrCorrupt, err)
	}
	return &api.Response{Write: func(b *api.Body) error {
		b.Buf = append(b.Buf, text...)
		return nil
	}}, nil
}
