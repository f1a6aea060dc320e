package proto

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

// ErrorDomain is the domain of every google.rpc.ErrorInfo that Holdfast sends.
const ErrorDomain = "holdfast"

// Keys of ErrorInfo's metadata. Values are a decimal number and an LSN, X/X.
const (
	metadataTerm     = "term"
	metadataExpected = "expected_lsn"
)

// retryDelay is what RESOURCE_EXHAUSTED tells a client to wait.
const retryDelay = time.Second

// Status turns e into a gRPC status: the reason's code, e.Error() as its
// message, and an ErrorInfo with reason, term and expected LSN.
// RESOURCE_EXHAUSTED gets a RetryInfo too.
func Status(e *consensus.Error) *status.Status {
	st := status.New(Code(e.Reason), bounded(e.Error()))
	info := &errdetails.ErrorInfo{
		Reason: string(e.Reason),
		Domain: ErrorDomain,
		Metadata: map[string]string{
			metadataTerm:     strconv.FormatUint(uint64(e.Term), 10),
			metadataExpected: e.Expected.String(),
		},
	}
	details := []protoadapt.MessageV1{info}
	if st.Code() == codes.ResourceExhausted {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retryDelay)})
	}
	with, err := st.WithDetails(details...)
	if err != nil {
		return st
	}
	return with
}

// ToStatus returns err as a server hands it to gRPC: nil as nil, a
// consensus.Error by Status, an error that already is a status as it is, the
// end of a context as CANCELED or DEADLINE_EXCEEDED, anything else as INTERNAL.
func ToStatus(err error) error {
	if err == nil {
		return nil
	}
	var e *consensus.Error
	if errors.As(err, &e) {
		return Status(e).Err()
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	return Status(&consensus.Error{Reason: ReasonInternal, Detail: err.Error()}).Err()
}

// FromStatus finds the consensus.Error in what a gRPC call returned. It
// returns nil if the other side sent none: the connection broke, a deadline
// passed, or the other side is not Holdfast. A reason that this version does
// not know becomes ReasonOther and its name goes into Detail.
func FromStatus(err error) *consensus.Error {
	var e *consensus.Error
	if errors.As(err, &e) {
		return e
	}
	st, ok := status.FromError(err)
	if !ok || st.Code() == codes.OK {
		return nil
	}
	for _, d := range st.Details() {
		info, ok := d.(*errdetails.ErrorInfo)
		if !ok || info.GetDomain() != ErrorDomain {
			continue
		}
		e := &consensus.Error{Reason: consensus.Reason(info.GetReason()), Detail: detailOf(st.Message(), info.GetReason())}
		if _, known := codeOf[e.Reason]; !known {
			e.Reason, e.Detail = ReasonOther, fmt.Sprintf("%.64q: %s", info.GetReason(), e.Detail)
		}
		if term, err := strconv.ParseUint(info.GetMetadata()[metadataTerm], 10, 64); err == nil {
			e.Term = wal.Term(term)
		}
		if lsn, err := wal.ParseLSN(info.GetMetadata()[metadataExpected]); err == nil {
			e.Expected = lsn
		}
		return e
	}
	return nil
}

// bounded makes text fit for a trailer: valid UTF-8 and at most 1 KiB.
func bounded(s string) string {
	const most = 1 << 10
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "")
}

// detailOf takes off the reason that Error put before the detail.
func detailOf(message, reason string) string {
	if n := len(reason) + 2; len(message) >= n && message[:n] == reason+": " {
		return message[n:]
	}
	return message
}
