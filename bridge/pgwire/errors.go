package pgwire

import "fmt"

// MessageError reports bytes that are not the message they should be.
type MessageError struct {
	Message string // which message was expected
	Reason  string
}

func (e *MessageError) Error() string { return fmt.Sprintf("malformed %s: %s", e.Message, e.Reason) }

func malformed(message, format string, args ...any) error {
	return &MessageError{message, fmt.Sprintf(format, args...)}
}
