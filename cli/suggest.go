package cli

import (
	"slices"
	"strings"
)

// Nearest returns the candidate that was probably meant by word, or "" if none
// is near: at most two edits away (one for a short word), or the only one that begins with word.
func Nearest(word string, candidates []string) string {
	best, bestEdits := "", 3
	if len(word) <= 3 {
		bestEdits = 2
	}
	sorted := slices.Sorted(slices.Values(candidates))
	for _, c := range sorted {
		if d := edits(strings.ToLower(word), strings.ToLower(c)); d < bestEdits {
			best, bestEdits = c, d
		}
	}
	if best != "" || len(word) < 2 {
		return best
	}
	for _, c := range sorted {
		if strings.HasPrefix(c, word) {
			if best != "" {
				return ""
			}
			best = c
		}
	}
	return best
}

// DidYouMean is a clause that names the nearest candidate, to be put behind an error; empty if none is near.
func DidYouMean(word, prefix string, candidates []string) string {
	if near := Nearest(word, candidates); near != "" {
		return "; did you mean " + prefix + near + "?"
	}
	return ""
}

// edits counts the insertions, deletions, replacements and swaps of neighbours
// between a and b (optimal string alignment).
func edits(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := d[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			d[i][j] = min(replace, d[i-1][j]+1, d[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
