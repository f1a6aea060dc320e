package cli

import (
	"errors"
	"fmt"
)

// Code is a process exit code. The numbers are part of the interface: scripts
// rely on them and they never change their meaning.
type Code int

const (
	OK         Code = 0 // done
	Failure    Code = 1 // anything not named below
	Usage      Code = 2 // the command line or a setting is wrong; nothing was done
	Degraded   Code = 3 // it works, but a member is missing or unhealthy
	NoQuorum   Code = 4 // no majority of the acceptors answers
	NotFound   Code = 5 // no such timeline, position or file
	Corruption Code = 6 // bytes are damaged, differ between replicas, or an acknowledged append is missing
	StaleTerm  Code = 7 // another proposer has won
)

// Codes lists every exit code with its meaning, in ascending order.
func Codes() []CodeMeaning {
	return []CodeMeaning{
		{OK, "done"},
		{Failure, "failed"},
		{Usage, "wrong command line or setting; nothing was done"},
		{Degraded, "works, but a member is missing or unhealthy"},
		{NoQuorum, "no majority of the acceptors answers"},
		{NotFound, "no such timeline, position or file"},
		{Corruption, "bytes are damaged, differ, or an acknowledged append is missing"},
		{StaleTerm, "another proposer has won"},
	}
}

// CodeMeaning pairs a code with the line that explains it.
type CodeMeaning struct {
	Code    Code
	Meaning string
}

// Error is an error that decides the exit code.
type Error struct {
	Code Code
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error that ends the process with code.
func Errorf(code Code, format string, args ...any) error {
	return &Error{code, fmt.Errorf(format, args...)}
}

// WithCode gives err an exit code; nil stays nil.
func WithCode(code Code, err error) error {
	if err == nil {
		return nil
	}
	return &Error{code, err}
}

// CodeOf is the exit code that err asks for: OK for nil, Failure for an error
// that carries none.
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Failure
}
