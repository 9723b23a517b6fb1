// Package body reads and decompresses the bodies of push requests within the byte budget of the write
// path.
//
// It owns the rule that every byte is reserved before it is read or decompressed, and the bound of each
// compression. The heads of snappy blocks and zstd frames bound their content. The others do not tell
// it, so gzip, deflate and LZ4 are decompressed piece by piece. The package never looks into what it
// has decompressed.
package body
