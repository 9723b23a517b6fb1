// Command memcached uses the Go client gomemcache against a server, and says where they disagree. Next to it
// are sessions of clients in other languages.
package main
