package proto

import (
	"bytes"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

var (
	sampleCreation = wal.CreationID{0xC0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	sampleProposer = wal.ProposerID{0xA0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
)

func sampleMembership() wal.Membership {
	return wal.Membership{Generation: 1, Members: []wal.Member{{ID: 1, Addr: "a:7000"}, {ID: 2, Addr: "b:7000"}, {ID: 3, Addr: "c:7000"}}}
}

func sampleHistory() wal.History {
	return wal.History{{Term: 1, LSN: 0x1000000}, {Term: 3, LSN: 0x1500708}, {Term: 7, LSN: 0x704E0C8}}
}

func sampleAppend(n int) *consensus.AppendRequest {
	data := bytes.Repeat([]byte("wal!"), n/4+1)[:n]
	return &consensus.AppendRequest{Generation: 1, Term: 7, Begin: 0x1_0704E0C8, Commit: 0x1_0704E000, Horizon: 0x1_07000000, CRC: wal.Checksum(data), Data: data}
}

func sampleAck() *consensus.AppendResponse {
	return &consensus.AppendResponse{Term: 7, Flush: 0x1_0704E0C8, Commit: 0x1_0704E000,
		Stages: consensus.Stages{QueueNanos: 12_000, WriteNanos: 30_000, SyncNanos: 310_000}}
}

// proposerSamples and acceptorSamples hold one filled message of each kind.
func proposerSamples() []consensus.Message {
	return []consensus.Message{
		&consensus.Greeting{Version: 1, Timeline: wal.TimelineID{Tenant: "prod", Timeline: "main"}, Creation: sampleCreation,
			Proposer: sampleProposer, Connection: 4, SystemID: 7714060067332523406, Membership: sampleMembership()},
		&consensus.VoteRequest{Generation: 1, Term: 7},
		&consensus.Elected{Generation: 1, Term: 7, Resume: 0x704E0C8, History: sampleHistory(), SystemID: 9, Properties: []byte("opaque")},
		sampleAppend(100),
	}
}

func acceptorSamples() []consensus.Message {
	return []consensus.Message{
		&consensus.AcceptorGreeting{Node: 2, Creation: sampleCreation, Term: 6, Membership: sampleMembership(), Flush: 0x704E0C8,
			Commit: 0x704E000, Health: wal.Quarantined, RequestBytesMax: wal.RequestBytesMax, WindowBytes: 64 << 20},
		&consensus.VoteResponse{Term: 7, Granted: true, Flush: 0x704E0C8, Commit: 0x704E000, Horizon: 0x7000000,
			History: sampleHistory(), SystemID: 9, Properties: []byte("opaque")},
		sampleAck(),
	}
}
