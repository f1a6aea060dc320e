package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Client asks acceptors. Many goroutines may use it at once.
type Client struct {
	nodes []*node
}

// node is one acceptor as the client knows it: an address.
type node struct {
	addr string
	conn *grpc.ClientConn
	holdfastv1.AdminServiceClient
	reads holdfastv1.AcceptorServiceClient
}

// Dial prepares connections to acceptors, each HOST:PORT. It does not wait for
// any of them: an acceptor that is away shows in the answers.
func Dial(addrs []string) (*Client, error) {
	if len(addrs) == 0 {
		return nil, errors.New("no acceptors were named")
	}
	c := &Client{}
	for i, addr := range addrs {
		for _, other := range addrs[:i] {
			if other == addr {
				c.Close()
				return nil, fmt.Errorf("acceptor %s is named twice", addr)
			}
		}
		conn, err := grpc.NewClient(addr, append(proto.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("acceptor %s: %w", addr, err)
		}
		c.nodes = append(c.nodes, &node{addr, conn, holdfastv1.NewAdminServiceClient(conn), holdfastv1.NewAcceptorServiceClient(conn)})
	}
	return c, nil
}

// Close ends the connections. It may be called more than once.
func (c *Client) Close() error {
	for _, n := range c.nodes {
		_ = n.conn.Close() // the second Close of a connection says that it was closed
	}
	return nil
}

// Addresses lists the acceptors in the order in which they were named.
func (c *Client) Addresses() []string {
	addrs := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addrs[i] = n.addr
	}
	return addrs
}

func (c *Client) node(addr string) (*node, error) {
	for _, n := range c.nodes {
		if n.addr == addr {
			return n, nil
		}
	}
	return nil, fmt.Errorf("acceptor %s is not among %s", addr, strings.Join(c.Addresses(), ", "))
}

// Answer is what one acceptor said, or why it said nothing.
type Answer[T any] struct {
	Addr  string
	Value T
	Err   error // nil if Value is its answer
}

// ask puts one question to every node at the same time and returns the answers
// in the order in which the acceptors were named.
func ask[T any](ctx context.Context, c *Client, question func(context.Context, *node) (T, error)) []Answer[T] {
	answers := make([]Answer[T], len(c.nodes))
	var wg sync.WaitGroup
	for i, n := range c.nodes {
		wg.Go(func() {
			v, err := question(ctx, n)
			answers[i] = Answer[T]{n.addr, v, explain(err)}
		})
	}
	wg.Wait()
	return answers
}

// Errors of acceptors and of questions to many of them.
var (
	// ErrNoQuorum: fewer than a majority of the acceptors answered.
	ErrNoQuorum = errors.New("no majority of the acceptors answers")
	// ErrNotFound: the timeline is on none of the acceptors that answered.
	ErrNotFound = errors.New("no such timeline")
	// ErrUnreachable: an acceptor does not answer.
	ErrUnreachable = errors.New("does not answer")
)

// explain makes an error of a call say what it means. A refusal keeps its
// consensus.Error inside.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if e := proto.FromStatus(err); e != nil {
		if e.Reason == proto.ReasonNotFound {
			return fmt.Errorf("%w: %w", ErrNotFound, e)
		}
		return e
	}
	switch st, ok := status.FromError(err); {
	case !ok:
		return err
	case st.Code() == codes.Unavailable, st.Code() == codes.DeadlineExceeded:
		return fmt.Errorf("%w: %s", ErrUnreachable, dialError(st.Message()))
	case st.Code() == codes.NotFound:
		return fmt.Errorf("%w: %s", ErrNotFound, st.Message())
	default:
		return fmt.Errorf("%s: %s", st.Code(), st.Message())
	}
}

// dialError takes off what gRPC wraps around the reason why it cannot connect.
func dialError(message string) string {
	const wrapped = `desc = "transport: Error while dialing: `
	if _, inner, ok := strings.Cut(message, wrapped); ok {
		return strings.TrimSuffix(inner, `"`)
	}
	return message
}

// failures joins the errors of answers, each with its acceptor; nil if there are none.
func failures[T any](answers []Answer[T]) error {
	var errs []error
	for _, a := range answers {
		if a.Err != nil {
			errs = append(errs, fmt.Errorf("acceptor %s: %w", a.Addr, a.Err))
		}
	}
	return errors.Join(errs...)
}

// answered counts the answers that are answers, "no such timeline" included.
func answered[T any](answers []Answer[T]) int {
	n := 0
	for _, a := range answers {
		if a.Err == nil || errors.Is(a.Err, ErrNotFound) {
			n++
		}
	}
	return n
}

// Node is what an acceptor says of itself.
type Node struct {
	ID   wal.NodeID
	Info *holdfastv1.GetNodeResponse
}

// Nodes asks every acceptor for itself.
func (c *Client) Nodes(ctx context.Context) []Answer[Node] {
	return ask(ctx, c, func(ctx context.Context, n *node) (Node, error) {
		r, err := n.GetNode(ctx, &holdfastv1.GetNodeRequest{})
		if err != nil {
			return Node{}, err
		}
		if r.GetNodeId() == 0 {
			return Node{}, errors.New("it says that its node id is 0, which is no node")
		}
		return Node{wal.NodeID(r.GetNodeId()), r}, nil
	})
}
