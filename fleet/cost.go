package fleet

import (
	"math"
	"os"
	"sync"
	"time"
)

// Cost is what a measured load took besides its time. Its JSON names are those
// of the peers harness. What is not known is -1.
type Cost struct {
	SyncsS       float64 `json:"syncs_s"`        // fdatasyncs of all replicas
	BytesPerSync float64 `json:"bytes_per_sync"` // payload of all replicas in one
	CPU          float64 `json:"cpu_s"`          // servers and load generator
	ClientCPU    float64 `json:"client_cpu_s"`   // of which this process, if the servers are others
	CPUPerOp     float64 `json:"cpu_us_per_op"`
	Switches     float64 `json:"switches_per_op"` // context switches of the same processes
	PeakRSS      float64 `json:"peak_rss_mb"`     // highest sum of the servers' proportional set sizes, 10^6
	ClientRSS    float64 `json:"client_rss_mb"`   // highest of this process, 0 if it is the server
	OtherCPU     float64 `json:"other_cpu_s"`     // what else the machine ran: a row with much of it was disturbed
}

// Probe reads counters around a measured time. Begin and End are called once each.
type Probe struct {
	Servers  []int // process ids; empty if they are elsewhere
	Replicas int   // that hold each append
	// Client is set if this process is not one of the servers.
	Client bool
	// Syncs returns how many fdatasyncs the servers have made; nil if nobody knows.
	Syncs func() (float64, error)

	began         time.Time
	seconds       float64
	servers, self usage
	machine       float64
	syncs         float64
	syncsErr      error
	rss, selfRSS  int64
	stop          chan struct{}
	polling       sync.WaitGroup
}

// rssPeriod is how often memory is looked at: the kernel walks page tables for it.
const rssPeriod = 500 * time.Millisecond

// Begin is called when the measured time begins.
func (p *Probe) Begin() {
	p.stop = make(chan struct{})
	p.polling.Go(p.pollRSS)
	p.syncs, p.syncsErr = p.countSyncs()
	p.machine = machineCPU()
	p.servers, p.self = usageOf(p.Servers...), usageOf(os.Getpid())
	p.began = time.Now()
}

// End is called when it ends.
func (p *Probe) End() {
	p.seconds = time.Since(p.began).Seconds()
	p.servers = usageOf(p.Servers...).minus(p.servers)
	p.self = usageOf(os.Getpid()).minus(p.self)
	p.machine = machineCPU() - p.machine
	if n, err := p.countSyncs(); p.syncsErr == nil {
		p.syncs, p.syncsErr = n-p.syncs, err
	}
	close(p.stop)
	p.polling.Wait()
}

func (p *Probe) countSyncs() (float64, error) {
	if p.Syncs == nil {
		return 0, os.ErrInvalid
	}
	return p.Syncs()
}

func (p *Probe) pollRSS() {
	tick := time.NewTicker(rssPeriod)
	defer tick.Stop()
	for {
		p.rss = max(p.rss, rssOf(p.Servers...))
		if p.Client {
			p.selfRSS = max(p.selfRSS, rssOf(os.Getpid()))
		}
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
	}
}

// Cost is what was read for a load of ops appends of payload bytes each.
func (p *Probe) Cost(ops uint64, payload int) Cost {
	c := Cost{SyncsS: -1, BytesPerSync: -1, CPU: -1, CPUPerOp: -1, Switches: -1, PeakRSS: -1, OtherCPU: -1}
	if p.Client {
		c.ClientCPU, c.ClientRSS = round(p.self.cpu), round(float64(p.selfRSS)/1e6)
	}
	if p.syncsErr == nil && p.syncs > 0 && p.seconds > 0 {
		c.SyncsS = round(p.syncs / p.seconds)
		c.BytesPerSync = round(float64(ops) * float64(payload) * float64(p.Replicas) / p.syncs)
	}
	if len(p.Servers) == 0 {
		return c
	}
	all := p.servers
	if p.Client {
		all = all.plus(p.self)
	}
	c.CPU, c.PeakRSS = round(all.cpu), round(float64(p.rss)/1e6)
	c.OtherCPU = round(max(0, p.machine-all.cpu))
	if ops > 0 {
		c.CPUPerOp = round(all.cpu / float64(ops) * 1e6)
		c.Switches = round(float64(all.switches) / float64(ops))
	}
	return c
}

func round(f float64) float64 { return math.Round(f*1000) / 1000 }
