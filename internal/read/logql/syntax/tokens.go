package syntax

import "strings"

// kind is a token of the language. The order is that in which Loki's grammar declares its tokens, because its
// errors list what they expected in that order.
type kind uint8

const (
	kEOF kind = iota
	kBytes
	kIdentifier
	kString
	kNumber
	kFlag
	kDuration
	kRange
	kEqual
	kRegexpMatch
	kRegexpNotMatch
	kNotPattern
	kOpenBrace
	kCloseBrace
	kCloseBracket
	kComma
	kDot
	kPipeMatch
	kPipeExact
	kPipePattern
	kOpenParen
	kCloseParen
	kBy
	kWithout
	kRangeOp // count_over_time and the like; the name is in the token
	kVectorOp
	kBool
	kJSON
	kRegexp
	kLogfmt
	kPipe
	kLineFormat
	kLabelFormat
	kUnwrap
	kConvertBytes
	kConvertDuration
	kConvertDurationSeconds
	kVector
	kLabelReplace
	kUnpack
	kOffset
	kPattern
	kIP
	kOn
	kIgnoring
	kGroupLeft
	kGroupRight
	kDecolorize
	kDrop
	kKeep
	kOr
	kAnd
	kUnless
	kCompareEqual
	kNotEqual
	kLess
	kLessOrEqual
	kGreater
	kGreaterOrEqual
	kAdd
	kSub
	kMul
	kDiv
	kMod
	kPow
)

// String returns what errors call the token: its text or, where there are several, the name in Loki's
// grammar.
func (k kind) String() string {
	switch k {
	case kEOF:
		return "$end"
	case kBytes:
		return "BYTES"
	case kIdentifier:
		return "IDENTIFIER"
	case kString:
		return "STRING"
	case kNumber:
		return "NUMBER"
	case kFlag:
		return "FUNCTION_FLAG"
	case kDuration:
		return "DURATION"
	case kRange:
		return "RANGE"
	case kConvertBytes:
		return "BYTES_CONV"
	case kConvertDuration:
		return "DURATION_CONV"
	case kConvertDurationSeconds:
		return "DURATION_SECONDS_CONV"
	case kVector:
		return "VECTOR"
	}
	for _, w := range words {
		if w.kind == k {
			return w.text
		}
	}
	return ""
}

// words are the tokens with a fixed text, in any case of letters.
var words = [...]struct {
	text string
	kind kind
}{
	{",", kComma}, {".", kDot}, {"{", kOpenBrace}, {"}", kCloseBrace}, {"(", kOpenParen}, {")", kCloseParen}, {"]", kCloseBracket},
	{"=", kEqual}, {"!=", kNotEqual}, {"=~", kRegexpMatch}, {"!~", kRegexpNotMatch}, {"!>", kNotPattern},
	{"|=", kPipeExact}, {"|~", kPipeMatch}, {"|>", kPipePattern}, {"|", kPipe},
	{"==", kCompareEqual}, {">", kGreater}, {">=", kGreaterOrEqual}, {"<", kLess}, {"<=", kLessOrEqual},
	{"+", kAdd}, {"-", kSub}, {"*", kMul}, {"/", kDiv}, {"%", kMod}, {"^", kPow},
	{"or", kOr}, {"and", kAnd}, {"unless", kUnless}, {"bool", kBool}, {"on", kOn}, {"ignoring", kIgnoring},
	{"group_left", kGroupLeft}, {"group_right", kGroupRight}, {"by", kBy}, {"without", kWithout}, {"offset", kOffset},
	{"json", kJSON}, {"regexp", kRegexp}, {"logfmt", kLogfmt}, {"unpack", kUnpack}, {"pattern", kPattern}, {"unwrap", kUnwrap},
	{"line_format", kLineFormat}, {"label_format", kLabelFormat}, {"decolorize", kDecolorize}, {"drop", kDrop}, {"keep", kKeep},
	{"label_replace", kLabelReplace}, {"ip", kIP},
}

// functions are the words that are names like others unless ( or by ( or without ( follows.
var functions = [...]struct {
	text string
	kind kind
}{
	{string(CountOverTime), kRangeOp}, {string(BytesOverTime), kRangeOp}, {string(BytesRate), kRangeOp}, {string(Rate), kRangeOp},
	{string(AbsentOverTime), kRangeOp}, {string(AvgOverTime), kRangeOp}, {string(SumOverTime), kRangeOp},
	{string(MinOverTime), kRangeOp}, {string(MaxOverTime), kRangeOp}, {string(StdvarOverTime), kRangeOp},
	{string(StddevOverTime), kRangeOp}, {string(QuantileOverTime), kRangeOp}, {string(FirstOverTime), kRangeOp},
	{string(LastOverTime), kRangeOp}, {string(RateCounter), kRangeOp},
	{string(Sum), kVectorOp}, {string(Avg), kVectorOp}, {string(Min), kVectorOp}, {string(Max), kVectorOp},
	{string(Count), kVectorOp}, {string(Stddev), kVectorOp}, {string(Stdvar), kVectorOp}, {string(TopK), kVectorOp},
	{string(BottomK), kVectorOp}, {string(ApproxTopK), kVectorOp}, {string(Sort), kVectorOp}, {string(SortDesc), kVectorOp},
	{"vector", kVector}, {"label_replace", kLabelReplace}, {"ip", kIP},
	{string(ConvertBytes), kConvertBytes}, {string(ConvertDuration), kConvertDuration},
	{string(ConvertDurationSeconds), kConvertDurationSeconds},
}

func lookupWord(text string) (kind, bool) {
	for _, w := range words {
		if w.text == text {
			return w.kind, true
		}
	}
	return 0, false
}

func lookupFunction(text string) (kind, bool) {
	for _, f := range functions {
		if f.text == text {
			return f.kind, true
		}
	}
	return 0, false
}

// token is a piece of the text of a query.
type token struct {
	kind kind
	at   Pos
	// text is a name, the value of a string, a number, a flag; of a word its text in lower case.
	text     string
	duration int64 // nanoseconds, of kDuration and kRange
	bytes    uint64
}

// name is how errors call the token.
func (t token) name() string {
	if t.kind == kRangeOp || t.kind == kVectorOp {
		return strings.ToUpper(t.text)
	}
	return t.kind.String()
}
