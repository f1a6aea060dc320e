package proto

import (
	"errors"
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/consensus"
)

// invalid is the error of every decoder: the sender broke the protocol.
func invalid(format string, args ...any) error {
	return &consensus.Error{Reason: consensus.ReasonProtocol, Detail: fmt.Sprintf(format, args...)}
}

// invalidErr says in which message err was found.
func invalidErr(message string, err error) error {
	var e *consensus.Error
	if errors.As(err, &e) {
		return invalid("%s: %s", message, e.Detail)
	}
	return invalid("%s: %v", message, err)
}
