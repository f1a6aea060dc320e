package pgwire

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Verb names a replication command.
type Verb string

// The commands that a physical replication client sends.
const (
	IdentifySystem        Verb = "IDENTIFY_SYSTEM"
	Show                  Verb = "SHOW"
	TimelineHistory       Verb = "TIMELINE_HISTORY"
	CreateReplicationSlot Verb = "CREATE_REPLICATION_SLOT"
	ReadReplicationSlot   Verb = "READ_REPLICATION_SLOT"
	DropReplicationSlot   Verb = "DROP_REPLICATION_SLOT"
	StartReplication      Verb = "START_REPLICATION"
	BaseBackup            Verb = "BASE_BACKUP"
)

// Command is a parsed replication command. Fields that its verb does not use are zero.
type Command struct {
	Verb       Verb
	Name       string  // Show: the parameter; slot commands and StartReplication: the slot, "" for none
	Timeline   uint32  // TimelineHistory, StartReplication; 0 = not given
	Start      wal.LSN // StartReplication
	Temporary  bool    // CreateReplicationSlot
	ReserveWAL bool    // CreateReplicationSlot
	Wait       bool    // DropReplicationSlot
}

// CommandError reports a command that is not understood.
type CommandError struct {
	Command string
	Reason  string
}

func (e *CommandError) Error() string { return fmt.Sprintf("%s: %q", e.Reason, clip(e.Command)) }

func clip(s string) string {
	if len(s) > 200 {
		return s[:200] + "..."
	}
	return s
}

// ParseCommand parses the text of a Query message on a replication connection.
// Logical replication and commands this package does not know are *CommandError.
func ParseCommand(text string) (Command, error) {
	p := commandParser{text: text, rest: text}
	c, err := p.parse()
	if err != nil {
		return Command{}, &CommandError{text, err.Error()}
	}
	if t := p.next(); t != (token{}) {
		return Command{}, &CommandError{text, fmt.Sprintf("unexpected %q", t.text)}
	}
	return c, nil
}

func (p *commandParser) parse() (Command, error) {
	first := p.next()
	c := Command{Verb: Verb(strings.ToUpper(first.text))}
	var err error
	switch c.Verb {
	case IdentifySystem:
	case Show:
		c.Name, err = p.settingName()
	case TimelineHistory:
		c.Timeline, err = p.timeline()
	case CreateReplicationSlot:
		if c.Name, err = p.identifier("slot name"); err != nil {
			return c, err
		}
		c.Temporary = p.accept("TEMPORARY")
		if !p.accept("PHYSICAL") {
			return c, fmt.Errorf("only PHYSICAL replication slots are offered")
		}
		c.ReserveWAL, err = p.slotOptions()
	case ReadReplicationSlot:
		c.Name, err = p.identifier("slot name")
	case DropReplicationSlot:
		c.Name, err = p.identifier("slot name")
		c.Wait = err == nil && p.accept("WAIT")
	case StartReplication:
		err = p.start(&c)
	case BaseBackup:
		p.rest = "" // refused by the server whatever its options are
	default:
		return c, fmt.Errorf("unsupported command")
	}
	return c, err
}

func (p *commandParser) start(c *Command) (err error) {
	if p.accept("SLOT") {
		if c.Name, err = p.identifier("slot name"); err != nil {
			return err
		}
	}
	p.accept("PHYSICAL")
	if p.accept("LOGICAL") {
		return fmt.Errorf("only PHYSICAL replication is offered")
	}
	if c.Start, err = wal.ParseLSN(p.next().text); err != nil {
		return err
	}
	if p.accept("TIMELINE") {
		c.Timeline, err = p.timeline()
	}
	return err
}

func (p *commandParser) timeline() (uint32, error) {
	t := p.next()
	n, err := strconv.ParseUint(t.text, 10, 32)
	if err != nil || n == 0 || t.quoted {
		return 0, fmt.Errorf("timeline %q: expected a number from 1 to 4294967295", t.text)
	}
	return uint32(n), nil
}

func (p *commandParser) settingName() (string, error) {
	name, err := p.identifier("setting name")
	for err == nil && p.accept(".") {
		var part string
		part, err = p.identifier("setting name")
		name += "." + part
	}
	return strings.ToLower(name), err
}

// slotOptions parses "RESERVE_WAL" or "(RESERVE_WAL [true], ...)".
func (p *commandParser) slotOptions() (reserveWAL bool, err error) {
	if p.accept("RESERVE_WAL") {
		return true, nil
	}
	if !p.accept("(") {
		return false, nil
	}
	for {
		name, err := p.identifier("option")
		if err != nil {
			return false, err
		}
		value := true
		if t := p.peek(); t.text != "," && t.text != ")" || t.quoted {
			p.next()
			value = !strings.EqualFold(t.text, "false") && !strings.EqualFold(t.text, "off") && t.text != "0"
		}
		if strings.EqualFold(name, "RESERVE_WAL") {
			reserveWAL = value
		} else if value {
			return false, fmt.Errorf("unsupported slot option %q", name)
		}
		switch t := p.next(); t.text {
		case ",":
		case ")":
			return reserveWAL, nil
		default:
			return false, fmt.Errorf("slot options: expected \",\" or \")\"")
		}
	}
}
