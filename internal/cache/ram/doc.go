// Package ram is the tier of the cache that holds decoded pages in memory.
//
// It owns a byte-weighted cache that resists scans (W-TinyLFU, by the library otter), and sees to it that pages which
// are wanted twice at one time are loaded once. It never knows what a page means, and never changes one.
package ram
