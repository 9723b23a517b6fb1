package lines

import (
	"encoding/binary"
	"strconv"
	"time"
)

// appendMillis appends a time in ms with three decimals, most of them short.
func appendMillis(b []byte, drawn uint64) []byte {
	micros := drawn & 0x3fff << (drawn >> 14 & 7)
	b = strconv.AppendUint(b, micros/1000, 10)
	rest := micros % 1000
	return append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}

// appendHex appends 16 digits.
func appendHex(b []byte, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, hexDigits(uint32(v))), hexDigits(uint32(v>>32)))
}

// hexDigits makes a digit of each four bits, all eight at once.
func hexDigits(v uint32) uint64 {
	x := uint64(v)
	x = (x<<16 | x) & 0x0000ffff0000ffff
	x = (x<<8 | x) & 0x00ff00ff00ff00ff
	x = (x<<4 | x) & 0x0f0f0f0f0f0f0f0f
	letters := (x + 0x0606060606060606) >> 4 & 0x0101010101010101
	return x + 0x3030303030303030 + letters*('a'-'0'-10)
}

// clock writes times. It remembers the day, which takes longest.
type clock struct {
	day    int64 // since 1970
	date   [10]byte
	common [12]byte
	known  bool
	ms     int64 // of the day
}

const msPerDay = 24 * 60 * 60 * 1000

func (c *clock) set(at int64) {
	ms := at / int64(time.Millisecond)
	day := ms / msPerDay
	c.ms = ms - day*msPerDay
	if day != c.day || !c.known {
		t := time.UnixMilli(day * msPerDay).UTC()
		copy(c.date[:], t.Format(time.DateOnly))
		copy(c.common[:], t.Format("02/Jan/2006:"))
		c.day, c.known = day, true
	}
}

// appendISO appends a time such as 2026-03-01T12:00:00.000.
func (c *clock) appendISO(b []byte) []byte {
	b = append(append(b, c.date[:]...), 'T')
	b = c.appendTime(b)
	ms := c.ms % 1000
	return append(b, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
}

// appendCommon appends a time such as 01/Mar/2026:12:00:00.
func (c *clock) appendCommon(b []byte) []byte { return c.appendTime(append(b, c.common[:]...)) }

func (c *clock) appendTime(b []byte) []byte {
	s := c.ms / 1000
	h, m := s/3600, s/60%60
	s %= 60
	return append(b, byte('0'+h/10), byte('0'+h%10), ':', byte('0'+m/10), byte('0'+m%10), ':', byte('0'+s/10), byte('0'+s%10))
}
