package pickle

// The supported opcodes, one group per protocol version from 0 to 4.
const (
	opMark, opStop, opList, opTuple, opAppend, opPut, opGet                        = '(', '.', 'l', 't', 'a', 'p', 'g'
	opInt, opLong, opFloat, opNone, opString, opUnicode                            = 'I', 'L', 'F', 'N', 'S', 'V'
	opEmptyList, opEmptyTuple, opAppends                                           = ']', ')', 'e'
	opBinPut, opLongBinPut, opBinGet, opLongBinGet                                 = 'q', 'r', 'h', 'j'
	opBinInt, opBinInt1, opBinInt2, opBinFloat                                     = 'J', 'K', 'M', 'G'
	opBinString, opShortBinString, opBinUnicode                                    = 'T', 'U', 'X'
	opProto, opTuple1, opTuple2, opTuple3, opNewTrue, opNewFalse, opLong1, opLong4 = 0x80, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b
	opBinBytes, opShortBinBytes                                                    = 'B', 'C'
	opShortBinUnicode, opBinUnicode8, opBinBytes8, opMemoize, opFrame              = 0x8c, 0x8d, 0x8e, 0x94, 0x95
)

// The opcodes of dicts.
const opEmptyDict, opDict, opSetItem, opSetItems = '}', 'd', 's', 'u'

// maxProtocol is the newest protocol version.
const maxProtocol = 5

// refused returns the name of an opcode that Python supports and this package does not. Opcodes that
// import, call or build objects are refused for safety, all others because no list of points needs
// them.
func refused(op byte) string {
	switch op {
	case 'c':
		return "GLOBAL"
	case 'R':
		return "REDUCE"
	case 'b':
		return "BUILD"
	case 'i':
		return "INST"
	case 'o':
		return "OBJ"
	case 0x81:
		return "NEWOBJ"
	case 0x92:
		return "NEWOBJ_EX"
	case 0x93:
		return "STACK_GLOBAL"
	case 0x82, 0x83, 0x84:
		return "EXT" + string("124"[op-0x82])
	case 'P':
		return "PERSID"
	case 'Q':
		return "BINPERSID"
	}
	return refusedData(op)
}

func refusedData(op byte) string {
	switch op {
	case '0':
		return "POP"
	case '1':
		return "POP_MARK"
	case '2':
		return "DUP"
	case 'd':
		return "DICT"
	case '}':
		return "EMPTY_DICT"
	case 's':
		return "SETITEM"
	case 'u':
		return "SETITEMS"
	case 0x8f:
		return "EMPTY_SET"
	case 0x90:
		return "ADDITEMS"
	case 0x91:
		return "FROZENSET"
	case 0x96:
		return "BYTEARRAY8"
	case 0x97:
		return "NEXT_BUFFER"
	case 0x98:
		return "READONLY_BUFFER"
	}
	return ""
}
