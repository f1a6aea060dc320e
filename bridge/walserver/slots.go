package walserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// slot is what a client believes to keep WAL for it.
type slot struct {
	Restart wal.LSN   `json:"restart_lsn"` // 0 = nothing reserved yet
	TLI     pgwal.TLI `json:"tli"`

	temporary uint32 // the connection whose end removes it; 0 = stays
	active    uint32 // the connection that streams with it; 0 = none
}

// slots are all of them. Safe for concurrent use.
type slots struct {
	path string

	mu   sync.Mutex
	byID map[string]*slot
}

const slotsMax = 1000

func openSlots(path string) (*slots, error) {
	s := &slots{path: path, byID: map[string]*slot{}}
	if path == "" {
		return s, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &s.byID)
	}
	for name, x := range s.byID {
		if err == nil && (x == nil || !validSlotName(name)) {
			err = fmt.Errorf("slot %q", name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the slots in %s cannot be read: %w", path, err)
	}
	return s, nil
}

// save writes the slots that are to survive.
func (s *slots) save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saveLocked()
}

func (s *slots) saveLocked() error {
	if s.path == "" {
		return nil
	}
	lasting := map[string]*slot{}
	for name, x := range s.byID {
		if x.temporary == 0 {
			lasting[name] = x
		}
	}
	b, err := json.MarshalIndent(lasting, "", "  ")
	if err != nil {
		return err
	}
	temp := s.path + ".tmp"
	if err := os.WriteFile(temp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, s.path)
}

func validSlotName(name string) bool {
	return name != "" && len(name) <= 63 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// slotError is a refusal with PostgreSQL's code for it.
type slotError struct{ code, message string }

func (e *slotError) Error() string { return e.message }

func (s *slots) create(name string, x slot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch _, exists := s.byID[name]; {
	case !validSlotName(name):
		return &slotError{"42602", fmt.Sprintf("replication slot name %q: expected 1 to 63 lower-case letters, digits and underscores", name)}
	case exists:
		return &slotError{"42710", fmt.Sprintf("replication slot %q already exists", name)}
	case len(s.byID) >= slotsMax:
		return &slotError{"53400", "all replication slots are in use"}
	}
	s.byID[name] = &x
	return s.saveLocked()
}

func (s *slots) read(name string) (slot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, ok := s.byID[name]
	if !ok {
		return slot{}, false
	}
	return *x, true
}

// find returns a slot that nobody else uses. The lock is held.
func (s *slots) find(name string) (*slot, error) {
	x, ok := s.byID[name]
	if !ok {
		return nil, &slotError{"42704", fmt.Sprintf("replication slot %q does not exist", name)}
	}
	if x.active != 0 {
		return nil, &slotError{"55006", fmt.Sprintf("replication slot %q is active for connection %d", name, x.active)}
	}
	return x, nil
}

func (s *slots) drop(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.find(name); err != nil {
		return err
	}
	delete(s.byID, name)
	return s.saveLocked()
}

// acquire makes the slot the connection's until release.
func (s *slots) acquire(name string, connection uint32) (release func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x, err := s.find(name)
	if err != nil {
		return nil, err
	}
	x.active = connection
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		x.active = 0
		s.saveLocked()
	}, nil
}

// reached notes what the slot's client has made durable; 0 says nothing.
func (s *slots) reached(name string, flush wal.LSN, tli pgwal.TLI) {
	if name == "" || flush == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x, ok := s.byID[name]; ok {
		x.Restart, x.TLI = flush, tli
	}
}

func (s *slots) dropTemporary(connection uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, x := range s.byID {
		if x.temporary == connection {
			delete(s.byID, name)
		}
	}
}
