// Package neighbours measures what one misbehaving tenant does to others: many tenants write and query over
// HTTP at a steady rate, and one of them misbehaves in each of eight ways.
//
// It owns the clients, the ways and the table. It knows a server by its URL only. The misbehaving client is a
// process of its own with a low priority, as on another machine it would not take processors from the rest.
package neighbours
