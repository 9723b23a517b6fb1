// Package body reads and decompresses the bodies of push requests within the byte budget of the write path.
//
// It owns the rule that no byte is read or decompressed that is not reserved, and what bounds each compression: snappy
// blocks and zstd frames tell the size of their content beforehand, gzip, deflate and LZ4 do not and are decompressed piece
// by piece. It never looks into what it has decompressed.
package body
