package main

import (
	"github.com/seed7f3f3bb8/holdfast/cli"
)

// codeOf decides the exit code: what the command asked for, else what the
// error is about.
func codeOf(err error) cli.Code {
	if code := cli.CodeOf(err); code != cli.Failure {
		return code
	}
	if cli.IsUsage(err) {
		return cli.Usage
	}
	return cli.Failure
}
