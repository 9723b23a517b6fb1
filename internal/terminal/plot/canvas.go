package plot

// canvas is a grid of cells. A cell of braille has 2 by 4 dots, any other has one.
type canvas struct {
	columns, rows int
	braille       bool
	cells         []cell
}

// cell holds its dots as the bits of a character from U+2800 on. Its series is that which was drawn last.
type cell struct {
	dots   uint8
	series int
}

func newCanvas(columns, rows int, braille bool) *canvas {
	return &canvas{columns: columns, rows: rows, braille: braille, cells: make([]cell, columns*rows)}
}

func (c *canvas) row(i int) []cell { return c.cells[i*c.columns : (i+1)*c.columns] }

func (c *canvas) dotsX() int {
	if c.braille {
		return 2 * c.columns
	}
	return c.columns
}

func (c *canvas) dotsY() int {
	if c.braille {
		return 4 * c.rows
	}
	return c.rows
}

// brailleDots are the bits of the dots in a cell, by row and column.
var brailleDots = [4][2]uint8{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// set sets the dot in a column and a row of dots, counted from the upper left.
func (c *canvas) set(x, y, series int) {
	if !c.braille {
		c.row(y)[x] = cell{1, series}
		return
	}
	at := &c.row(y / 4)[x/2]
	at.dots |= brailleDots[y%4][x%2]
	at.series = series
}

// line connects two dots, both included, by Bresenham's algorithm.
func (c *canvas) line(x, y, toX, toY, series int) {
	dx, dy := distance(x, toX), -distance(y, toY)
	stepX, stepY := 1, 1
	if toX < x {
		stepX = -1
	}
	if toY < y {
		stepY = -1
	}
	for off := dx + dy; ; {
		c.set(x, y, series)
		if x == toX && y == toY {
			return
		}
		twice := 2 * off
		if twice >= dy {
			off += dy
			x += stepX
		}
		if twice <= dx {
			off += dx
			y += stepY
		}
	}
}

func distance(a, b int) int { return max(a-b, b-a) }
