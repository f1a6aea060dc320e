package pgwire

import (
	"fmt"
	"strings"
)

// token is one word of a command; the zero token is the end of the text.
type token struct {
	text   string
	quoted bool
}

type commandParser struct{ text, rest string }

// next takes the next token. A quoted token's text is what the quotes enclose,
// with doubled quotes undone.
func (p *commandParser) next() token {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	if strings.Trim(p.rest, "; \t\r\n") == "" {
		p.rest = ""
		return token{}
	}
	switch c := p.rest[0]; c {
	case '"', '\'':
		var b strings.Builder
		for i := 1; i < len(p.rest); i++ {
			if p.rest[i] != c {
				b.WriteByte(p.rest[i])
				continue
			}
			if i+1 < len(p.rest) && p.rest[i+1] == c {
				b.WriteByte(c)
				i++
				continue
			}
			p.rest = p.rest[i+1:]
			return token{b.String(), true}
		}
		t := token{p.rest, false} // an unclosed quote is no identifier
		p.rest = ""
		return t
	case '(', ')', ',', '.', ';':
		p.rest = p.rest[1:]
		return token{text: string(c)}
	}
	n := strings.IndexAny(p.rest, " \t\r\n\"'(),.;")
	if n < 0 {
		n = len(p.rest)
	}
	t := token{text: p.rest[:n]}
	p.rest = p.rest[n:]
	return t
}

func (p *commandParser) peek() token {
	q := *p
	return q.next()
}

// accept takes the next token if it is the unquoted keyword.
func (p *commandParser) accept(keyword string) bool {
	if t := p.peek(); t.quoted || !strings.EqualFold(t.text, keyword) {
		return false
	}
	p.next()
	return true
}

func (p *commandParser) identifier(what string) (string, error) {
	t := p.next()
	if !t.quoted && strings.ContainsAny(t.text, "\"'(),.;/") || t.text == "" {
		return "", fmt.Errorf("expected a %s, found %q", what, t.text)
	}
	if !t.quoted {
		return strings.ToLower(t.text), nil
	}
	return t.text, nil
}

// QuoteIdentifier quotes a slot name for use in a replication command.
func QuoteIdentifier(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
