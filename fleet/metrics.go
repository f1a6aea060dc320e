package fleet

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// metricsBytesMax bounds what a node may answer.
const metricsBytesMax = 16 << 20

// Metrics asks the node for its metrics and returns each sample by its name
// and labels as the text format writes them: "holdfast_flush_seconds_count".
func (n *Node) Metrics(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.HTTP+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("node %d: %w", n.ID, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("node %d: /metrics answers %s", n.ID, response.Status)
	}
	return parseMetrics(io.LimitReader(response.Body, metricsBytesMax))
}

func parseMetrics(r io.Reader) (map[string]float64, error) {
	samples := map[string]float64{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		if at < 0 {
			continue
		}
		if v, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			samples[line[:at]] = v
		}
	}
	return samples, lines.Err()
}
