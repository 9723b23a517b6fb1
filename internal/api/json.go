package api

import (
	"unicode/utf8"
	"unsafe"
)

// Raw writes text as it is.
func (b *Body) Raw(s string) { b.Buf = append(b.Buf, s...) }

const hexDigits = "0123456789abcdef"

// Str writes a JSON string. Invalid UTF-8 becomes U+FFFD.
func (b *Body) Str(s string) {
	buf := append(b.Buf, '"')
	plain := 0 // start of the bytes that need no escape
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				buf = append(append(buf, s[plain:i]...), `\ufffd`...)
				plain = i + 1
			}
			i += n
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		buf = append(buf, s[plain:i]...)
		switch c {
		case '"', '\\':
			buf = append(buf, '\\', c)
		case '\n':
			buf = append(buf, `\n`...)
		case '\r':
			buf = append(buf, `\r`...)
		case '\t':
			buf = append(buf, `\t`...)
		default:
			buf = append(buf, `\u00`...)
			buf = append(buf, hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		plain = i
	}
	b.Buf = append(append(buf, s[plain:]...), '"')
}

// StrBytes is Str for bytes.
func (b *Body) StrBytes(s []byte) {
	b.Str(unsafe.String(unsafe.SliceData(s), len(s))) // Str does not keep it
}

// Texts writes a list of strings. It may send the buffer after each element.
func (b *Body) Texts(values []string) {
	b.Raw("[")
	for i, s := range values {
		if i > 0 {
			b.Raw(",")
		}
		b.Str(s)
		b.Spill()
	}
	b.Raw("]")
}

// VersionMembers writes the members of an object with build information, without its braces.
func (b *Body) VersionMembers(v *Version) {
	for i, m := range [...][2]string{
		{`"version":`, v.Version}, {`"revision":`, v.Revision}, {`"branch":`, v.Branch},
		{`"buildUser":`, v.BuildUser}, {`"buildDate":`, v.BuildDate}, {`"goVersion":`, v.GoVersion},
	} {
		if i > 0 {
			b.Raw(",")
		}
		b.Raw(m[0])
		b.Str(m[1])
	}
}
