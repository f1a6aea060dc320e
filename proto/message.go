package proto

import (
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
)

// EncodeProposerMessage wraps a message that a proposer sends. Another kind of
// message is the caller's mistake and an error.
func EncodeProposerMessage(m consensus.Message) (*holdfastv1.ProposerMessage, error) {
	switch m := m.(type) {
	case *consensus.Greeting:
		return &holdfastv1.ProposerMessage{Message: &holdfastv1.ProposerMessage_Greeting{Greeting: EncodeGreeting(m)}}, nil
	case *consensus.VoteRequest:
		return &holdfastv1.ProposerMessage{Message: &holdfastv1.ProposerMessage_VoteRequest{VoteRequest: EncodeVoteRequest(m)}}, nil
	case *consensus.Elected:
		return &holdfastv1.ProposerMessage{Message: &holdfastv1.ProposerMessage_Elected{Elected: EncodeElected(m)}}, nil
	case *consensus.AppendRequest:
		return &holdfastv1.ProposerMessage{Message: &holdfastv1.ProposerMessage_AppendRequest{AppendRequest: EncodeAppendRequest(m)}}, nil
	}
	return nil, fmt.Errorf("a proposer does not send %T", m)
}

// DecodeProposerMessage checks and unwraps a message of a proposer. An
// AppendRequest shares in's data.
func DecodeProposerMessage(in *holdfastv1.ProposerMessage) (consensus.Message, error) {
	switch m := in.GetMessage().(type) {
	case *holdfastv1.ProposerMessage_Greeting:
		return checked(DecodeGreeting(m.Greeting))
	case *holdfastv1.ProposerMessage_VoteRequest:
		return checked(DecodeVoteRequest(m.VoteRequest))
	case *holdfastv1.ProposerMessage_Elected:
		return checked(DecodeElected(m.Elected))
	case *holdfastv1.ProposerMessage_AppendRequest:
		return checked(DecodeAppendRequest(m.AppendRequest))
	}
	return nil, invalid("message of a kind that is not known to this version")
}

// EncodeAcceptorMessage wraps a message that an acceptor sends. Another kind
// of message is the caller's mistake and an error.
func EncodeAcceptorMessage(m consensus.Message) (*holdfastv1.AcceptorMessage, error) {
	switch m := m.(type) {
	case *consensus.AcceptorGreeting:
		return &holdfastv1.AcceptorMessage{Message: &holdfastv1.AcceptorMessage_Greeting{Greeting: EncodeAcceptorGreeting(m)}}, nil
	case *consensus.VoteResponse:
		return &holdfastv1.AcceptorMessage{Message: &holdfastv1.AcceptorMessage_VoteResponse{VoteResponse: EncodeVoteResponse(m)}}, nil
	case *consensus.AppendResponse:
		return &holdfastv1.AcceptorMessage{Message: &holdfastv1.AcceptorMessage_AppendResponse{AppendResponse: EncodeAppendResponse(m)}}, nil
	}
	return nil, fmt.Errorf("an acceptor does not send %T", m)
}

// DecodeAcceptorMessage checks and unwraps a message of an acceptor.
func DecodeAcceptorMessage(in *holdfastv1.AcceptorMessage) (consensus.Message, error) {
	switch m := in.GetMessage().(type) {
	case *holdfastv1.AcceptorMessage_Greeting:
		return checked(DecodeAcceptorGreeting(m.Greeting))
	case *holdfastv1.AcceptorMessage_VoteResponse:
		return checked(DecodeVoteResponse(m.VoteResponse))
	case *holdfastv1.AcceptorMessage_AppendResponse:
		return checked(DecodeAppendResponse(m.AppendResponse))
	}
	return nil, invalid("message of a kind that is not known to this version")
}

// checked makes sure that an error comes with a nil interface, not with a nil pointer in one.
func checked[M consensus.Message](m M, err error) (consensus.Message, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}
