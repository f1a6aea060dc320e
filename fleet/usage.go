package fleet

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// usage is what processes have used since they began.
type usage struct {
	cpu      float64 // seconds, user and system
	switches int64   // context switches of the threads that live
}

func (u usage) plus(o usage) usage  { return usage{u.cpu + o.cpu, u.switches + o.switches} }
func (u usage) minus(o usage) usage { return usage{u.cpu - o.cpu, u.switches - o.switches} }

// ticksPerSecond is the kernel's USER_HZ, the same on every architecture that Go runs on.
const ticksPerSecond = 100

// usageOf adds up processes. One that has ended counts as nothing.
func usageOf(pids ...int) usage {
	var u usage
	for _, pid := range pids {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		// The name, in parentheses, may hold anything; times are fields 14 and 15.
		end := strings.LastIndexByte(string(b), ')')
		if f := strings.Fields(string(b)[end+1:]); len(f) > 12 {
			u.cpu += (number(f[11]) + number(f[12])) / ticksPerSecond
		}
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		for _, path := range threads {
			u.switches += int64(field(path, "voluntary_ctxt_switches:") + field(path, "nonvoluntary_ctxt_switches:"))
		}
	}
	return u
}

// rssOf is the memory of processes in bytes, what they share divided among those who share it.
func rssOf(pids ...int) int64 {
	var n int64
	for _, pid := range pids {
		n += int64(field(fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss:")) << 10
	}
	return n
}

// machineCPU is the processor seconds of everything but idling, waiting and what a host took away.
func machineCPU() float64 {
	b, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line)
	var ticks float64
	for _, i := range []int{1, 2, 3, 6, 7} { // user nice system irq softirq
		if i < len(f) {
			ticks += number(f[i])
		}
	}
	return ticks / ticksPerSecond
}

// field is the number behind a name at the beginning of a line; 0 if it is not there.
func field(path, name string) float64 {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), name); ok {
			if words := strings.Fields(rest); len(words) > 0 {
				return number(words[0])
			}
		}
	}
	return 0
}

func number(s string) float64 {
	n, _ := strconv.ParseFloat(s, 64)
	return n
}
