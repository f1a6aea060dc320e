package proto

import (
	"time"

	"github.com/seed7f3f3bb8/holdfast/wal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// MessageBytesMax is the largest message that either side accepts: the
// largest append, and room for its header and for a page of a listing. A
// message above it ends the call with RESOURCE_EXHAUSTED.
const MessageBytesMax = wal.RequestBytesMax + 64<<10

const (
	// windowBytes is HTTP/2's flow-control window of a stream and of a
	// connection. They are set together: one without the other stalls the stream.
	windowBytes = 4 << 20

	// readBufferBytes lets one read system call fetch several HTTP/2 frames.
	readBufferBytes = 128 << 10

	// writeBufferBytes lets one write system call take several HTTP/2 frames; each
	// wakes the other side up. It is shared, so an idle connection holds none.
	writeBufferBytes = 128 << 10

	keepalivePeriod  = 10 * time.Second
	keepaliveTimeout = 5 * time.Second

	// keepaliveMinTime is the most often that a client may ping; it must be below keepalivePeriod.
	keepaliveMinTime = 5 * time.Second
)

// ServerOptions are what an acceptor's gRPC server needs: the codec, the
// windows, the message limit and keepalive. Credentials are the caller's.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(Codec{}),
		grpc.InitialWindowSize(windowBytes),
		grpc.InitialConnWindowSize(windowBytes),
		grpc.ReadBufferSize(readBufferBytes),
		grpc.WriteBufferSize(writeBufferBytes),
		grpc.MaxRecvMsgSize(MessageBytesMax),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMinTime, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepalivePeriod, Timeout: keepaliveTimeout}),
	}
}

// DialOptions are what a client of an acceptor needs: the codec, the windows,
// the message limit and keepalive. Retries are off: the caller alone knows
// what may be sent again. A proxy that the environment names for web pages is
// not used: WAL goes to the address that was given. Credentials are the caller's.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(Codec{}), grpc.MaxCallRecvMsgSize(MessageBytesMax)),
		grpc.WithInitialWindowSize(windowBytes),
		grpc.WithInitialConnWindowSize(windowBytes),
		grpc.WithReadBufferSize(readBufferBytes),
		grpc.WithWriteBufferSize(writeBufferBytes),
		grpc.WithDisableRetry(),
		grpc.WithNoProxy(),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepalivePeriod, Timeout: keepaliveTimeout, PermitWithoutStream: true}),
	}
}
