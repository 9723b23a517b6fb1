// Package event says how an event of Graphite is stored: as a line of a stream of its own, at the time of
// the event.
//
// It owns the labels of the stream, the form of a line and the ids. Receivers write such lines and readers
// read them; the store between knows only lines. So events have the durability, retention, deletion and
// tenants of log lines, and LogQL reads them, too:
//
//	{service_name="graphite_events"} | json | tags =~ ".*deploy.*"
//
// A line is JSON, {"what":"deploy 7","tags":"deploy web","data":"by anna"}. Its structured metadata has the
// id, by which a line of another sender in the stream is told apart from an event.
package event
