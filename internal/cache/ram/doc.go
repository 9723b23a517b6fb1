// Package ram is the tier of the cache that holds decoded pages in memory.
//
// It owns a byte-weighted cache that resists scans (W-TinyLFU, by the library otter), and loads a value that
// several callers want at one time once. It never knows what a value means, and never changes one.
package ram
