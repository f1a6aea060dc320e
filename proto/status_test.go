package proto

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestErrorsSurviveTheWire(t *testing.T) {
	for _, reason := range Reasons() {
		e := &consensus.Error{Reason: reason, Term: 1<<64 - 1, Expected: 0x1_0704E0C8, Detail: "what was wrong"}
		got := FromStatus(status.FromProto(Status(e).Proto()).Err())
		if got == nil || *got != *e {
			t.Errorf("%s: got %+v, expected %+v", reason, got, e)
		}
	}
}

func TestCodes(t *testing.T) {
	for reason, code := range map[consensus.Reason]codes.Code{
		consensus.ReasonGap:         codes.FailedPrecondition,
		consensus.ReasonRewrite:     codes.FailedPrecondition,
		consensus.ReasonStaleStream: codes.FailedPrecondition,
		consensus.ReasonNotElected:  codes.FailedPrecondition,
		consensus.ReasonDiverged:    codes.FailedPrecondition,
		consensus.ReasonChecksum:    codes.InvalidArgument,
		consensus.ReasonTooLarge:    codes.InvalidArgument,
		consensus.ReasonProtocol:    codes.InvalidArgument,
		consensus.ReasonNoSpace:     codes.ResourceExhausted,
		consensus.ReasonPoisoned:    codes.Unavailable,
		ReasonStarting:              codes.Unavailable,
		ReasonDraining:              codes.Unavailable,
		ReasonTrimmed:               codes.OutOfRange,
		ReasonCorrupt:               codes.DataLoss,
		ReasonNotFound:              codes.NotFound,
	} {
		if got := Code(reason); got != code {
			t.Errorf("%s travels as %v, expected %v", reason, got, code)
		}
	}
}

// The details are what a client in another language sees.
func TestStatusDetails(t *testing.T) {
	st := Status(&consensus.Error{Reason: consensus.ReasonNoSpace, Term: 7, Expected: 0x704E0C8, Detail: "the disk is full"})
	if st.Message() != "NO_SPACE: the disk is full" {
		t.Errorf("message is %q", st.Message())
	}
	info, ok := st.Details()[0].(*errdetails.ErrorInfo)
	if !ok || info.Domain != "holdfast" || info.Reason != "NO_SPACE" || info.Metadata["term"] != "7" || info.Metadata["expected_lsn"] != "0/704E0C8" {
		t.Errorf("first detail is %v", st.Details()[0])
	}
	retry, ok := st.Details()[1].(*errdetails.RetryInfo)
	if !ok || retry.RetryDelay.AsDuration() <= 0 {
		t.Errorf("second detail is %v", st.Details()[1])
	}
	if n := len(Status(&consensus.Error{Reason: consensus.ReasonGap}).Details()); n != 1 {
		t.Errorf("a gap has %d details, expected only ErrorInfo: to retry it is wrong", n)
	}
}

func TestToStatus(t *testing.T) {
	for _, c := range []struct {
		err  error
		code codes.Code
	}{
		{nil, codes.OK},
		{fmt.Errorf("append: %w", &consensus.Error{Reason: consensus.ReasonGap}), codes.FailedPrecondition},
		{status.Error(codes.Aborted, "mine"), codes.Aborted},
		{fmt.Errorf("read: %w", context.Canceled), codes.Canceled},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
		{io.ErrUnexpectedEOF, codes.Internal},
	} {
		if got := status.Code(ToStatus(c.err)); got != c.code {
			t.Errorf("%v travels as %v, expected %v", c.err, got, c.code)
		}
	}
}

func TestFromStatusOfOthers(t *testing.T) {
	other, err := status.New(codes.Internal, "x").WithDetails(&errdetails.ErrorInfo{Reason: "GAP", Domain: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{nil, io.EOF, errors.New("x"), status.Error(codes.Unavailable, "gone"), other.Err()} {
		if e := FromStatus(err); e != nil {
			t.Errorf("%v became %v", err, e)
		}
	}
	newer, err := status.New(codes.Aborted, "NEWER: text").WithDetails(
		&errdetails.ErrorInfo{Reason: "NEWER", Domain: ErrorDomain, Metadata: map[string]string{"term": "-1", "expected_lsn": "zzz"}})
	if err != nil {
		t.Fatal(err)
	}
	if e := FromStatus(newer.Err()); e == nil || e.Reason != ReasonOther || e.Term != 0 || e.Expected != wal.LSN(0) || e.Detail != `"NEWER": text` {
		t.Errorf("a newer version's reason became %+v", e)
	}
}

func TestStatusMessageIsBounded(t *testing.T) {
	st := Status(&consensus.Error{Reason: consensus.ReasonProtocol, Detail: "\xff" + strings.Repeat("é", 1<<16)})
	if m := st.Message(); len(m) > 1<<10 || !utf8.ValidString(m) {
		t.Errorf("message has %d bytes, valid UTF-8: %v", len(m), utf8.ValidString(m))
	}
}
