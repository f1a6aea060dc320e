package proto

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	protobuf "google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// acceptor answers a Greeting, then acknowledges appends until one has Begin
// 99, which it calls a gap. It reads with this package's codec.
type acceptor struct {
	holdfastv1.UnimplementedAcceptorServiceServer
}

func (acceptor) Append(stream grpc.BidiStreamingServer[holdfastv1.ProposerMessage, holdfastv1.AcceptorMessage]) error {
	in := FromProposer{Sink: &heap{}}
	for {
		if err := in.Receive(stream); err == io.EOF {
			return nil
		} else if err != nil {
			return ToStatus(err)
		}
		var answer consensus.Message
		switch m := in.Message().(type) {
		case *consensus.Greeting:
			answer = acceptorSamples()[0]
		case *consensus.AppendRequest:
			if m.Begin == 99 {
				return ToStatus(&consensus.Error{Reason: consensus.ReasonGap, Term: 7, Expected: 16, Detail: "begins at 0/63, expected 0/10"})
			}
			if wal.Checksum(m.Data) != m.CRC {
				return ToStatus(&consensus.Error{Reason: consensus.ReasonChecksum, Detail: "checksum"})
			}
			answer = &consensus.AppendResponse{Term: m.Term, Flush: m.Begin + wal.LSN(len(m.Data))}
		}
		if err := stream.SendMsg(answer); err != nil {
			return err
		}
	}
}

// stockAcceptor does the same with nothing but generated code.
type stockAcceptor struct {
	holdfastv1.UnimplementedAcceptorServiceServer
}

func (stockAcceptor) Append(stream grpc.BidiStreamingServer[holdfastv1.ProposerMessage, holdfastv1.AcceptorMessage]) error {
	for {
		in, err := stream.Recv()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		var answer consensus.Message
		switch m := in.GetMessage().(type) {
		case *holdfastv1.ProposerMessage_Greeting:
			answer = acceptorSamples()[0]
		case *holdfastv1.ProposerMessage_AppendRequest:
			r := m.AppendRequest
			if r.BeginLsn == 99 {
				return Status(&consensus.Error{Reason: consensus.ReasonGap, Term: 7, Expected: 16, Detail: "begins at 0/63, expected 0/10"}).Err()
			}
			if wal.Checksum(r.Data) != r.Crc32C {
				return status.Error(codes.InvalidArgument, "checksum")
			}
			answer = &consensus.AppendResponse{Term: wal.Term(r.Term), Flush: wal.LSN(r.BeginLsn) + wal.LSN(len(r.Data))}
		}
		out, err := EncodeAcceptorMessage(answer)
		if err != nil {
			return err
		}
		if err := stream.Send(out); err != nil {
			return err
		}
	}
}

func dial(t *testing.T, server holdfastv1.AcceptorServiceServer, serverOptions []grpc.ServerOption, dialOptions []grpc.DialOption) holdfastv1.AcceptorServiceClient {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(serverOptions...)
	holdfastv1.RegisterAcceptorServiceServer(s, server)
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), append(dialOptions, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return holdfastv1.NewAcceptorServiceClient(conn)
}

var sizes = []int{0, 1, 100, 5000, contiguousBytesMax, contiguousBytesMax + 1, 100_000, wal.RequestBytesMax}

// Our proposer's side against our own acceptor and against one of generated code only.
func TestCodecOverGRPC(t *testing.T) {
	for name, client := range map[string]holdfastv1.AcceptorServiceClient{
		"own server":   dial(t, acceptor{}, ServerOptions(), DialOptions()),
		"stock server": dial(t, stockAcceptor{}, []grpc.ServerOption{}, DialOptions()),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			stream, err := client.Append(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var in FromAcceptor
			if err := stream.SendMsg(proposerSamples()[0]); err != nil {
				t.Fatal(err)
			}
			if err := in.Receive(stream); err != nil || !reflect.DeepEqual(in.Message(), acceptorSamples()[0]) {
				t.Fatalf("greeting: %+v, %v", in.Message(), err)
			}
			for _, n := range sizes {
				r := sampleAppend(n)
				if err := stream.SendMsg(r); err != nil {
					t.Fatal(err)
				}
				if err := in.Receive(stream); err != nil {
					t.Fatal(err)
				}
				if ack, ok := in.Append(); !ok || ack.Flush != r.Begin+wal.LSN(n) || ack.Term != r.Term {
					t.Fatalf("%d bytes: %+v", n, in.Message())
				}
			}
			if err := stream.SendMsg(&consensus.AppendRequest{Term: 7, Begin: 99}); err != nil {
				t.Fatal(err)
			}
			err = in.Receive(stream)
			e := FromStatus(err)
			if e == nil || e.Reason != consensus.ReasonGap || e.Expected != 16 || e.Term != 7 || status.Code(err) != codes.FailedPrecondition {
				t.Fatalf("got %v (%+v), expected a gap", err, e)
			}
		})
	}
}

// A client of nothing but generated code against our acceptor.
func TestStockClient(t *testing.T) {
	client := dial(t, acceptor{}, ServerOptions(), nil)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	stream, err := client.Append(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range sizes {
		r := sampleAppend(n)
		out, err := EncodeProposerMessage(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(out); err != nil {
			t.Fatal(err)
		}
		in, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		want := &holdfastv1.AcceptorMessage{Message: &holdfastv1.AcceptorMessage_AppendResponse{
			AppendResponse: &holdfastv1.AppendResponse{Term: 7, FlushLsn: uint64(r.Begin) + uint64(n)}}}
		if !protobuf.Equal(in, want) {
			t.Fatalf("%d bytes: got %v, expected %v", n, in, want)
		}
	}
}

// A request above the limit is refused by name before memory is taken for it;
// a message far above it ends the stream, as gRPC does that.
func TestTooLargeOverGRPC(t *testing.T) {
	client := dial(t, acceptor{}, ServerOptions(), DialOptions())
	for _, c := range []struct {
		n    int
		code codes.Code
	}{{wal.RequestBytesMax + 1, codes.InvalidArgument}, {MessageBytesMax + 1, codes.ResourceExhausted}} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		stream, err := client.Append(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.SendMsg(sampleAppend(c.n)); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		var in FromAcceptor
		if err := in.Receive(stream); status.Code(err) != c.code {
			t.Errorf("%d bytes: got %v, expected %v", c.n, err, c.code)
		}
		cancel()
	}
}

// An AppendRequest may be reused as soon as SendMsg has returned.
func TestMessageIsReusableAfterSend(t *testing.T) {
	r := sampleAppend(100)
	first, err := Codec{}.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	before := first.Materialize()
	r.Begin++
	if _, err := (Codec{}).Marshal(r); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Materialize(), before) {
		t.Error("encoding a second message changed the first one")
	}
}
