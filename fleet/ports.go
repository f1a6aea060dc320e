package fleet

import (
	"errors"
	"math/rand/v2"
	"net"
)

// Ports are taken from below the range that the kernel gives to outgoing
// connections: a port there could be taken by somebody's connection while its
// node is down, even by a proposer's own attempt to reach it.
const (
	portMin = 10_000
	portMax = 32_000
)

// freePorts finds n different loopback ports that nobody listens on now.
func freePorts(n int) ([]int, error) {
	var ports []int
	for tries := 0; len(ports) < n; tries++ {
		if tries > 100*n {
			return nil, errors.New("no free ports on 127.0.0.1")
		}
		port := portMin + rand.IntN(portMax-portMin)
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		// Kept open until all are found, so that none is found twice.
		defer l.Close()
		ports = append(ports, port)
	}
	return ports, nil
}
