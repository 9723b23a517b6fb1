// Command promtail sends lines with the client of Promtail, the shipper of Loki, and with its defaults, but
// for the waits between attempts. Promtail as a program has left Loki's module; its client is still there.
package main
