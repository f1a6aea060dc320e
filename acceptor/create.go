package acceptor

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/zap"
)

// creation is a request to make this node's copy of a timeline.
type creation struct {
	id      wal.TimelineID
	state   wal.State
	replace *wal.CreationID // the creation to be replaced, nil if there must be none
}

// create makes the copy. It reports false if it was there already, exactly as
// asked for.
//
// A node cannot know whether it once had the timeline and has lost it. The
// client sees to that: it looks at every member first and, if any of them has
// ever voted, creates nothing; copies that exist are replaced before missing ones
// are made, and each request is sent at most once. What is decided here is that a
// copy which has voted is never replaced.
func (n *Node) create(ctx context.Context, c *creation) (*timeline, bool, error) {
	if n.draining.Load() {
		return nil, false, drainingError
	}
	if !c.state.Membership.Has(n.cfg.NodeID) {
		return nil, false, &consensus.Error{Reason: consensus.ReasonMembership, Detail: fmt.Sprintf("node %d is not among the members of %v", n.cfg.NodeID, c.id)}
	}
	lock := n.registry.changing(c.id)
	lock.Lock()
	defer lock.Unlock()

	t := n.registry.get(c.id)
	if t != nil && t.filled.Load() {
		return nil, false, &consensus.Error{Reason: consensus.ReasonLost, Detail: fmt.Sprintf("the copy of %v here was lost and is filled for reading; a lost copy never comes back by creation", c.id)}
	}
	if t != nil {
		v, err := t.look()
		if err != nil {
			return nil, false, err
		}
		if same, err := compare(c, v); same || err != nil {
			return t, false, err
		}
		if err := t.replaceable(ctx, *c.replace); err != nil {
			return nil, false, err
		}
	} else if x, ok := n.absences.get(c.id); ok && x.creation == c.state.Creation {
		return nil, false, &consensus.Error{Reason: consensus.ReasonLost, Detail: "a lost copy never comes back by creation: " + x.detail(c.id)}
	} else if c.replace != nil {
		return nil, false, &consensus.Error{Reason: consensus.ReasonWrongTimeline, Detail: fmt.Sprintf("%v is not on this node: there is no creation %v to replace", c.id, *c.replace)}
	}
	t = newTimeline(n, c.id)
	if err := storage.Create(t.storageConfig(), c.state); err != nil {
		if errors.Is(err, storage.ErrExists) {
			return nil, false, fmt.Errorf("%v: its directory exists but was not there when this process started: %w", c.id, err)
		}
		if storage.IsNoSpace(err) {
			return nil, false, &consensus.Error{Reason: consensus.ReasonNoSpace, Detail: err.Error()}
		}
		return nil, false, err
	}
	n.registry.put(t)
	n.absences.drop(c.id)
	n.log.Info("a timeline was created", zap.String("timeline", t.name), zap.Stringer("creation", c.state.Creation), zap.Stringer("lsn", c.state.FirstLSN))
	return t, true, nil
}

// compare reports whether the copy v is what c asks for. The error says why it
// cannot be replaced; (false, nil) leaves that to be tried.
func compare(c *creation, v *view) (bool, error) {
	st := &v.state
	if st.Creation == c.state.Creation && !st.Creation.IsZero() {
		if st.FirstLSN != c.state.FirstLSN || st.SystemID != c.state.SystemID && st.Term == 0 || st.Membership.Generation == 1 && !st.Membership.Equal(c.state.Membership) {
			return false, &consensus.Error{Reason: proto.ReasonAlreadyExists, Detail: fmt.Sprintf("%v exists under this creation id with other parameters", c.id)}
		}
		return true, nil
	}
	if c.replace == nil {
		return false, &consensus.Error{Reason: proto.ReasonAlreadyExists, Detail: fmt.Sprintf("%v exists here as creation %v", c.id, st.Creation)}
	}
	return false, nil
}

// replaceable removes a copy that has never voted, and refuses otherwise. Its
// name's lock is held, so that nobody creates it meanwhile.
func (t *timeline) replaceable(ctx context.Context, old wal.CreationID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Nobody can vote any more once it is closed.
	if err := t.closeLocked(ctx, closedError); err != nil {
		return err
	}
	v, err := t.lookLocked()
	if err != nil {
		return err
	}
	if v.health != wal.Healthy {
		return &consensus.Error{Reason: consensus.ReasonLost, Detail: fmt.Sprintf("the copy of %v here is %v, so it may have voted: %s", t.id, v.health, v.why)}
	}
	if err := checkCreation(t.id, v.state.Creation, old); err != nil {
		return err
	}
	if v.state.Term != 0 {
		return &consensus.Error{Reason: proto.ReasonVoted, Term: v.state.Term, Detail: fmt.Sprintf("%v has voted in term %d here: it is in use, and a member without it has lost its copy", t.id, v.state.Term)}
	}
	return t.removeLocked()
}

// delete removes this node's copy. It reports false if there is none.
func (n *Node) delete(ctx context.Context, id wal.TimelineID, creation wal.CreationID) (bool, error) {
	lock := n.registry.changing(id)
	lock.Lock()
	defer lock.Unlock()
	n.absences.drop(id)
	t := n.registry.get(id)
	if t == nil {
		return false, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.filling.Load() != nil {
		return false, busyFilling(id)
	}
	v, err := t.lookLocked()
	if err != nil {
		return false, err
	}
	// A copy that cannot be read does not know its creation: then the name will do.
	if !v.state.Creation.IsZero() {
		if err := checkCreation(id, v.state.Creation, creation); err != nil {
			return false, err
		}
	}
	if err := t.closeLocked(ctx, deletedError(id)); err != nil {
		return false, err
	}
	if err := t.removeLocked(); err != nil {
		return false, err
	}
	n.log.Info("a timeline was deleted", zap.String("timeline", t.name), zap.Stringer("creation", creation))
	return true, nil
}

// removeLocked deletes the directory and forgets the timeline, which is
// closed. mu and the name's lock are held.
func (t *timeline) removeLocked() error {
	for _, dir := range []string{t.node.dir.of(t.id), t.node.dir.filledDir(t.id)} {
		if err := storage.Delete(t.node.cfg.FS, dir); err != nil && !errors.Is(err, storage.ErrNotFound) {
			// It may be gone under its name or not; only a look at the disk can tell.
			t.cold.Store(nil)
			return fmt.Errorf("%v could not be deleted: %w", t.id, err)
		}
	}
	t.deleted = true
	t.node.registry.remove(t)
	return nil
}
