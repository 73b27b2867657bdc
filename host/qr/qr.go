// Package qr draws a text as a QR code, for a login link that a phone opens.
//
// It owns the two drawings, an SVG path and lines for a terminal, and is the one
// home of the encoder. It does not own what is encoded. Stateless and safe for
// concurrent use. A text over TextMax bytes is refused.
package qr

import (
	"errors"
	"strconv"
	"strings"

	"rsc.io/qr"
)

const (
	// TextMax is the longest text, in bytes: more would be too fine for a camera.
	TextMax = 512
	// Quiet is the free margin around a code, in modules, as scanners want it.
	Quiet = 4
)

// ErrTooLong says that a text does not fit.
var ErrTooLong = errors.New("the text is too long for a QR code")

// Code is one encoded text.
type Code struct{ c *qr.Code }

// Encode encodes a text.
func Encode(text string) (Code, error) {
	if len(text) > TextMax {
		return Code{}, ErrTooLong
	}
	c, err := qr.Encode(text, qr.L)
	if err != nil {
		return Code{}, ErrTooLong
	}
	return Code{c}, nil
}

// Size is the number of modules on one side, without the margin.
func (c Code) Size() int { return c.c.Size }

// Black tells a module's colour; outside of the code all is white.
func (c Code) Black(x, y int) bool {
	return x >= 0 && y >= 0 && x < c.c.Size && y < c.c.Size && c.c.Black(x, y)
}

// Path is the code as the path of an SVG, one unit for each module.
func (c Code) Path() string {
	var b strings.Builder
	for y := range c.Size() {
		for x := 0; x < c.Size(); x++ {
			from := x
			for c.Black(x, y) {
				x++
			}
			if n := strconv.Itoa(x - from); x > from {
				b.WriteString("M" + strconv.Itoa(from) + " " + strconv.Itoa(y) + "h" + n + "v1h-" + n + "z")
			}
		}
	}
	return b.String()
}

// Terminal is the code in half blocks, two rows of modules a line. Ink is drawn
// for white, so that it reads on the dark ground most terminals have; scanners
// of phones take the inverse on a light one, too.
func (c Code) Terminal() string {
	var b strings.Builder
	for y := -Quiet; y < c.Size()+Quiet; y += 2 {
		for x := -Quiet; x < c.Size()+Quiet; x++ {
			switch top, bottom := !c.Black(x, y), !c.Black(x, y+1); {
			case top && bottom:
				b.WriteRune('█')
			case top:
				b.WriteRune('▀')
			case bottom:
				b.WriteRune('▄')
			default:
				b.WriteByte(' ')
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
