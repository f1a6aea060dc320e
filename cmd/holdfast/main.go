// Command holdfast keeps a database's write-ahead log safe on three machines.
//
// It is one binary: the acceptor that stores the log, and the commands that
// feed it, read it, prove it and look at it. "holdfast --help" lists them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/seed7f3f3bb8/holdfast/cli"
)

func main() {
	relaxTimers()
	leave := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		leave = append(leave, syscall.SIGHUP) // a terminal that is closed asks to leave, it does not kill
	}
	ctx, stop := signal.NotifyContext(context.Background(), leave...)
	code := run(ctx, os.Args[1:], &cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()})
	stop()
	os.Exit(int(code))
}

// run is one invocation of the program.
func run(ctx context.Context, args []string, streams *cli.Streams) cli.Code {
	a := &app{Streams: streams}
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return cli.OK
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	paint := cli.Painter(streams.Colour(streams.Err))
	fmt.Fprintf(streams.Err, "%s %v\n", paint.Paint(cli.Red, "holdfast:"), err)
	return codeOf(err)
}
