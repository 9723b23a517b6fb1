package graphite

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/event"
	"github.com/shaledb/shale/internal/read/graphite/attime"
	"github.com/shaledb/shale/internal/read/graphite/events"
)

// Events finds events: an [events.Reader].
type Events interface {
	Find(ctx context.Context, q *events.Query) ([]event.Event, error)
	Get(ctx context.Context, q *events.Query, id int64) (event.Event, bool, error)
}

var _ Events = (*events.Reader)(nil)

func (h *Handler) eventEndpoints() []api.Endpoint {
	return []api.Endpoint{
		{Pattern: "/events/get_data", Name: "events", Needs: bounded, Serve: h.events},
		{Pattern: "/events/{id}", Name: "event", Needs: bounded, Methods: reads, Serve: h.event},
	}
}

// events serves the events with the tags in a range of time, the oldest first.
func (h *Handler) events(r *api.Request) (*api.Response, error) {
	q := &events.Query{Tenant: r.Tenant(), Quota: r.Quota, Cost: r.Cost, Union: param(r, "set") == "union"}
	if r.Form.Has("tags") {
		q.Tags = append([]string{}, strings.Fields(param(r, "tags"))...)
	}
	now := h.o.Now().In(zoneOf(r))
	q.End = now.UnixNano()
	for _, bound := range []struct {
		name string
		at   *int64
	}{{"from", &q.Start}, {"until", &q.End}} {
		text := param(r, bound.name)
		if text == "" {
			continue
		}
		t, err := attime.Parse(text, now)
		if err != nil {
			return nil, badParameters("Invalid value %.200q for param %s: %w", text, bound.name, withoutClass(err))
		}
		*bound.at = t.UnixNano()
	}
	found, err := h.o.Events.Find(r.Context(), q)
	if err != nil {
		return nil, err
	}
	return jsonText(r, func(b *api.Body) error {
		b.Raw("[")
		for i := range found {
			if i > 0 {
				b.Raw(", ")
			}
			writeEvent(b, &found[i])
			b.Spill()
		}
		b.Raw("]")
		return nil
	})
}

func writeEvent(b *api.Body, e *event.Event) {
	b.Raw(`{"when": ` + strconv.FormatInt(e.Time/int64(time.Second), 10))
	writeMembers(b, e)
}

// writeMembers writes all members of an event but its time, and the end of the object.
func writeMembers(b *api.Body, e *event.Event) {
	b.Raw(`, "what": `)
	b.Str(e.What)
	b.Raw(`, "data": `)
	b.Str(e.Data)
	b.Raw(`, "tags": `)
	b.Texts(e.Tags)
	b.Raw(`, "id": ` + strconv.FormatInt(e.ID, 10) + "}")
}

// event serves an event by its id.
func (h *Handler) event(r *api.Request) (*api.Response, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return nil, failed(http.StatusNotFound, errors.New("the id of an event is a number"))
	}
	e, ok, err := h.o.Events.Get(r.Context(), &events.Query{Tenant: r.Tenant(), Quota: r.Quota, Cost: r.Cost}, id)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		//lint:ignore ST1005 the text of graphite-web
		return nil, failed(http.StatusNotFound, errors.New("Event matching query does not exist"))
	}
	return &api.Response{Write: func(b *api.Body) error {
		b.Raw(`{"when": `)
		b.Str(time.Unix(0, e.Time).UTC().Format("2006-01-02T15:04:05.999Z07:00"))
		writeMembers(b, &e)
		return nil
	}}, nil
}
