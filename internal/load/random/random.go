package random

// Salts keep draws for different purposes independent.
const (
	SaltCycle    = 0xa0761d6478bd642f
	SaltRelabel  = 0xe7037ed1a0b428db
	SaltJitter   = 0x8ebc6af09c88c6e3
	SaltLate     = 0x589965cc75374cc3
	SaltTwice    = 0x1d8e4e27c47d124f
	SaltExemplar = 0xeb44accab455d165
	SaltShape    = 0x2d358dccaa6c78a5
	SaltSpawn    = 0x9e6c63d0676a9a99
)

func Uniform(seed, series, tick uint64) float64 {
	return float64(Draw(seed, series, tick)>>11) / (1 << 53)
}

// Happens draws an event of the given probability.
func Happens(share float64, drawn uint64) bool {
	return share > 0 && float64(drawn>>11)/(1<<53) < share
}

// Draw is the only source of randomness: a hash of its arguments, the finaliser of SplitMix64 over a sum in
// which each argument has an odd factor of its own, applied twice so that neighbours share nothing.
func Draw(seed, series, tick uint64) uint64 {
	x := Spread64(seed + series*0x9e3779b97f4a7c15)
	return Spread64(x + tick*0xd1342543de82ef95)
}

func Spread64(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
