package main

import (
	"errors"
	"io/fs"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/proto"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

// codeOf decides the exit code: what the command asked for, else what the
// error is about.
func codeOf(err error) cli.Code {
	if code := cli.CodeOf(err); code != cli.Failure {
		return code
	}
	var fenced *proposer.FencedError
	var overlap *workload.OverlapError
	var refused *consensus.Error
	switch {
	case cli.IsUsage(err):
		return cli.Usage
	case errors.As(err, &fenced):
		return cli.StaleTerm
	case errors.Is(err, workload.ErrMissing), errors.Is(err, admin.ErrDamaged), errors.As(err, &overlap):
		return cli.Corruption
	case errors.Is(err, admin.ErrNoQuorum):
		return cli.NoQuorum
	case errors.Is(err, admin.ErrNotFound), errors.Is(err, proposer.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return cli.NotFound
	case errors.As(err, &refused):
		return codeOfReason(refused.Reason)
	}
	return cli.Failure
}

// codeOfReason is the exit code for what an acceptor refused.
func codeOfReason(r consensus.Reason) cli.Code {
	switch r {
	case proto.ReasonNotFound, proto.ReasonTrimmed:
		return cli.NotFound
	case proto.ReasonCorrupt, consensus.ReasonQuarantined, consensus.ReasonChecksum:
		return cli.Corruption
	}
	return cli.Failure
}
