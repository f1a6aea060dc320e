package proto

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
	protobuf "google.golang.org/protobuf/proto"
)

func TestMessagesSurviveTheWire(t *testing.T) {
	for _, m := range proposerSamples() {
		out, err := EncodeProposerMessage(m)
		if err != nil {
			t.Fatal(err)
		}
		in := overTheWire(t, out, &holdfastv1.ProposerMessage{})
		got, err := DecodeProposerMessage(in)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%T: got %+v, %v; expected %+v", m, got, err, m)
		}
	}
	for _, m := range acceptorSamples() {
		out, err := EncodeAcceptorMessage(m)
		if err != nil {
			t.Fatal(err)
		}
		in := overTheWire(t, out, &holdfastv1.AcceptorMessage{})
		got, err := DecodeAcceptorMessage(in)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%T: got %+v, %v; expected %+v", m, got, err, m)
		}
	}
}

// Every field of a sample is set, so a field that a conversion forgets shows above.
func TestSamplesAreFilled(t *testing.T) {
	for _, m := range append(proposerSamples(), acceptorSamples()...) {
		v := reflect.ValueOf(m).Elem()
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%T.%s is zero", m, v.Type().Field(i).Name)
			}
		}
	}
}

func TestMessagesOfTheOtherSideAreNotSent(t *testing.T) {
	if _, err := EncodeProposerMessage(&consensus.AppendResponse{}); err == nil {
		t.Error("a proposer sent an AppendResponse")
	}
	if _, err := EncodeAcceptorMessage(&consensus.PeerCommit{}); err == nil {
		t.Error("an acceptor sent a PeerCommit on an Append stream")
	}
}

func TestWrongProposerMessages(t *testing.T) {
	pb := func(m consensus.Message) *holdfastv1.ProposerMessage {
		out, err := EncodeProposerMessage(m)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	s := proposerSamples
	for _, c := range []struct {
		name   string
		in     *holdfastv1.ProposerMessage
		reason consensus.Reason
		detail string
	}{
		{"nothing", &holdfastv1.ProposerMessage{}, consensus.ReasonProtocol, "not known"},
		{"timeline", edit(pb(s()[0]), func(m *holdfastv1.ProposerMessage) { m.GetGreeting().Timeline = "../etc/passwd" }), consensus.ReasonProtocol, "lower-case letters"},
		{"long timeline", edit(pb(s()[0]), func(m *holdfastv1.ProposerMessage) { m.GetGreeting().Timeline = strings.Repeat("a", 1<<16) }), consensus.ReasonProtocol, "at most 127"},
		{"no creation", edit(pb(s()[0]), func(m *holdfastv1.ProposerMessage) { m.GetGreeting().CreationId = nil }), consensus.ReasonProtocol, "creation id is missing"},
		{"short creation", edit(pb(s()[0]), func(m *holdfastv1.ProposerMessage) { m.GetGreeting().CreationId = []byte{1} }), consensus.ReasonProtocol, "greeting: creation id has 1 bytes"},
		{"long proposer", edit(pb(s()[0]), func(m *holdfastv1.ProposerMessage) { m.GetGreeting().ProposerId = make([]byte, 17) }), consensus.ReasonProtocol, "proposer id has 17 bytes"},
		{"no membership", edit(pb(s()[0]), func(m *holdfastv1.ProposerMessage) { m.GetGreeting().Membership = nil }), consensus.ReasonProtocol, "membership is missing"},
		{"a member twice", edit(pb(s()[0]), func(m *holdfastv1.ProposerMessage) { m.GetGreeting().Membership.Members[1].NodeId = 1 }), consensus.ReasonProtocol, "listed twice"},
		{"too many members", edit(pb(s()[0]), func(m *holdfastv1.ProposerMessage) {
			m.GetGreeting().Membership.NewMembers = make([]*holdfastv1.Member, 32)
		}), consensus.ReasonProtocol, "32 members"},
		{"long address", edit(pb(s()[0]), func(m *holdfastv1.ProposerMessage) {
			m.GetGreeting().Membership.Members[0].Addr = strings.Repeat("a", 256)
		}), consensus.ReasonProtocol, "256 bytes"},
		{"vote for term 0", pb(&consensus.VoteRequest{Generation: 1}), consensus.ReasonProtocol, "terms begin at 1"},
		{"history falls", edit(pb(s()[2]), func(m *holdfastv1.ProposerMessage) { m.GetElected().History[1].Lsn = 1 }), consensus.ReasonProtocol, "does not rise"},
		{"history too long", edit(pb(s()[2]), func(m *holdfastv1.ProposerMessage) {
			m.GetElected().History = make([]*holdfastv1.Position, wal.HistoryMax+1)
		}), consensus.ReasonProtocol, "4097 entries"},
		{"history of another term", edit(pb(s()[2]), func(m *holdfastv1.ProposerMessage) { m.GetElected().Term = 8 }), consensus.ReasonProtocol, "expected the election's term 8"},
		{"properties", edit(pb(s()[2]), func(m *holdfastv1.ProposerMessage) {
			m.GetElected().Properties = make([]byte, wal.PropertiesBytesMax+1)
		}), consensus.ReasonProtocol, "16385 bytes"},
		{"append in term 0", edit(pb(s()[3]), func(m *holdfastv1.ProposerMessage) { m.GetAppendRequest().Term = 0 }), consensus.ReasonProtocol, "terms begin at 1"},
		{"append too large", pb(sampleAppend(wal.RequestBytesMax + 1)), consensus.ReasonTooLarge, "at most 524288"},
		{"append over the end", edit(pb(s()[3]), func(m *holdfastv1.ProposerMessage) { m.GetAppendRequest().BeginLsn = 1<<64 - 99 }), consensus.ReasonProtocol, "run over the end"},
	} {
		m, err := DecodeProposerMessage(c.in)
		var e *consensus.Error
		if m != nil || !errors.As(err, &e) || e.Reason != c.reason || !strings.Contains(e.Detail, c.detail) {
			t.Errorf("%s: got %v, %v; expected %s: ...%s...", c.name, m, err, c.reason, c.detail)
		}
	}
}

func TestWrongAcceptorMessages(t *testing.T) {
	pb := func(i int) *holdfastv1.AcceptorMessage {
		out, err := EncodeAcceptorMessage(acceptorSamples()[i])
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, c := range []struct {
		name   string
		in     *holdfastv1.AcceptorMessage
		detail string
	}{
		{"nothing", &holdfastv1.AcceptorMessage{}, "not known"},
		{"no node", edit(pb(0), func(m *holdfastv1.AcceptorMessage) { m.GetGreeting().NodeId = 0 }), "node id is 0"},
		{"unknown health", edit(pb(0), func(m *holdfastv1.AcceptorMessage) { m.GetGreeting().Health = 99 }), "health is 99"},
		{"no health", edit(pb(0), func(m *holdfastv1.AcceptorMessage) { m.GetGreeting().Health = 0 }), "health is HEALTH_UNSPECIFIED"},
		{"commit above flush", edit(pb(1), func(m *holdfastv1.AcceptorMessage) { m.GetVoteResponse().CommitLsn = 1 << 40 }), "out of order"},
		{"history above flush", edit(pb(1), func(m *holdfastv1.AcceptorMessage) { m.GetVoteResponse().History[2].Lsn = 1 << 40 }), "beyond the log's end"},
		{"history above term", edit(pb(1), func(m *holdfastv1.AcceptorMessage) { m.GetVoteResponse().Term = 6 }), "above the acceptor's term 6"},
		{"ack of more than is flushed", edit(pb(2), func(m *holdfastv1.AcceptorMessage) { m.GetAppendResponse().FlushLsn = 1 }), "above flush"},
	} {
		m, err := DecodeAcceptorMessage(c.in)
		var e *consensus.Error
		if m != nil || !errors.As(err, &e) || e.Reason != consensus.ReasonProtocol || !strings.Contains(e.Detail, c.detail) {
			t.Errorf("%s: got %v, %v; expected ...%s...", c.name, m, err, c.detail)
		}
	}
}

func TestPeerTimeline(t *testing.T) {
	p := &PeerTimeline{Timeline: wal.TimelineID{Tenant: "prod", Timeline: "main"}, Creation: sampleCreation, LastLogTerm: 7,
		Flush: 30, Commit: 20, Horizon: 10, Health: wal.Healthy}
	got, err := DecodePeerTimeline(overTheWire(t, EncodePeerTimeline(p), &holdfastv1.PeerTimeline{}))
	if err != nil || *got != *p {
		t.Errorf("got %+v, %v; expected %+v", got, err, p)
	}
	if c := p.PeerCommit(); c.Creation != p.Creation || c.LastLogTerm != 7 || c.Commit != 20 {
		t.Errorf("PeerCommit is %+v", c)
	}
	wrong := EncodePeerTimeline(p)
	wrong.CommitLsn = 31
	if _, err := DecodePeerTimeline(wrong); err == nil {
		t.Error("a commit above the flush was accepted")
	}
}

func overTheWire[M protobuf.Message](t *testing.T, out protobuf.Message, in M) M {
	t.Helper()
	b, err := protobuf.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := protobuf.Unmarshal(b, in); err != nil {
		t.Fatal(err)
	}
	return in
}

func edit[M any](m M, change func(M)) M {
	change(m)
	return m
}
