package install

import (
	"fmt"
	"strings"
)

const (
	// diffMax is the largest number of lines, multiplied, that are compared line
	// by line; beyond it a change is shown as one block.
	diffMax     = 4 << 20
	diffContext = 3
)

// Diff shows what a plan changes, as diff -u does.
func (p Plan) Diff() string {
	var out strings.Builder
	for _, c := range p.Changes {
		from, to := c.Path, c.Path
		if c.Before == nil {
			from = "/dev/null"
		}
		if c.After == nil {
			to = "/dev/null"
		}
		fmt.Fprintf(&out, "--- %s\n+++ %s\n", from, to)
		out.WriteString(diffLines(splitLines(string(c.Before)), splitLines(string(c.After))))
	}
	return out.String()
}

func splitLines(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// edit is one line of a comparison: ' ', '-' or '+'.
type edit struct {
	op   byte
	text string
}

func diffLines(a, b []string) string {
	edits := compare(a, b)
	var out strings.Builder
	for i := 0; i < len(edits); {
		if edits[i].op == ' ' {
			i++
			continue
		}
		// One hunk: up to where more than two contexts of lines are the same.
		from := max(0, i-diffContext)
		end, same := i, 0
		for j := i; j < len(edits) && same <= 2*diffContext; j++ {
			if edits[j].op == ' ' {
				same++
			} else {
				end, same = j+1, 0
			}
		}
		to := min(len(edits), end+diffContext)
		hunk(&out, edits, from, to)
		i = to
	}
	return out.String()
}

func hunk(out *strings.Builder, edits []edit, from, to int) {
	oldAt, newAt := 1, 1
	for _, e := range edits[:from] {
		if e.op != '+' {
			oldAt++
		}
		if e.op != '-' {
			newAt++
		}
	}
	oldLen, newLen := 0, 0
	for _, e := range edits[from:to] {
		if e.op != '+' {
			oldLen++
		}
		if e.op != '-' {
			newLen++
		}
	}
	// A side without a line names the one before it.
	if oldLen == 0 {
		oldAt--
	}
	if newLen == 0 {
		newAt--
	}
	fmt.Fprintf(out, "@@ -%d,%d +%d,%d @@\n", oldAt, oldLen, newAt, newLen)
	for _, e := range edits[from:to] {
		out.WriteByte(e.op)
		out.WriteString(e.text)
		if !strings.HasSuffix(e.text, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// compare finds a longest common subsequence between what the two ends share.
func compare(a, b []string) []edit {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var edits []edit
	for _, line := range a[:head] {
		edits = append(edits, edit{' ', line})
	}
	edits = append(edits, middle(a[head:len(a)-tail], b[head:len(b)-tail])...)
	for _, line := range a[len(a)-tail:] {
		edits = append(edits, edit{' ', line})
	}
	return edits
}

func middle(a, b []string) (edits []edit) {
	common := make([][]int, len(a)+1)
	if len(a)*len(b) <= diffMax {
		for i := range common {
			common[i] = make([]int, len(b)+1)
		}
		for i := len(a) - 1; i >= 0; i-- {
			for j := len(b) - 1; j >= 0; j-- {
				if a[i] == b[j] {
					common[i][j] = common[i+1][j+1] + 1
				} else {
					common[i][j] = max(common[i+1][j], common[i][j+1])
				}
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) && common[0] != nil {
		switch {
		case a[i] == b[j]:
			edits = append(edits, edit{' ', a[i]})
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			edits = append(edits, edit{'-', a[i]})
			i++
		default:
			edits = append(edits, edit{'+', b[j]})
			j++
		}
	}
	for ; i < len(a); i++ {
		edits = append(edits, edit{'-', a[i]})
	}
	for ; j < len(b); j++ {
		edits = append(edits, edit{'+', b[j]})
	}
	return edits
}
