// A session of the Go client gomemcache. A module of its own, because Shale needs it for a test only.
module github.com/shaledb/shale/test/memcached

go 1.26

require github.com/bradfitz/gomemcache v0.0.0-20260422231931-4d751bb6e37c
