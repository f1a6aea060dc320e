package acceptor

import (
	"context"
	"strconv"
	"strings"
	"time"

	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"google.golang.org/grpc"
)

const (
	scrubBytesPerSecond = 64 << 20 // when the caller does not say
	scrubStepBytes      = 1 << 20
	scrubReportEvery    = time.Second
)

// ScrubTimeline reads the whole copy from the device, verifies it and reports
// what is damaged, at a pace that leaves the disk to those who write.
func (s *adminService) ScrubTimeline(in *holdfastv1.ScrubTimelineRequest, stream grpc.ServerStreamingServer[holdfastv1.ScrubTimelineResponse]) error {
	t, r, err := s.node.acquireExact(in.GetTimeline(), in.GetCreationId())
	if err != nil {
		return s.node.status(err)
	}
	defer t.release(r)
	return s.node.status(r.scrub(stream.Context(), in.GetBytesPerSecondMax(), stream.Send))
}

func (r *replica) scrub(ctx context.Context, bytesPerSecond uint64, report func(*holdfastv1.ScrubTimelineResponse) error) error {
	if bytesPerSecond == 0 {
		bytesPerSecond = scrubBytesPerSecond
	}
	scrubber := r.log.NewScrubber()
	defer scrubber.Close()
	out := &holdfastv1.ScrubTimelineResponse{BytesTotal: uint64(r.log.Bytes())}
	start := time.Now()
	reported := start
	for {
		read, damage, done, err := scrubber.Step(scrubStepBytes)
		out.BytesDone += uint64(read)
		r.t.node.cfg.Metrics.ScrubbedBytes.Add(float64(read))
		for _, d := range damage {
			r.quarantine(&storage.DamageError{Damage: d})
			out.Damage = append(out.Damage, encodeDamage(d))
		}
		if err != nil {
			return r.explain(err)
		}
		if done {
			out.BytesTotal = out.BytesDone
			return report(out)
		}
		out.BytesTotal = max(out.BytesTotal, out.BytesDone+1) // the log grows meanwhile
		if now := time.Now(); len(out.Damage) > 0 || now.Sub(reported) >= scrubReportEvery {
			if err := report(out); err != nil {
				return err
			}
			out.Damage, reported = nil, now
		}
		due := start.Add(time.Duration(float64(out.BytesDone) / float64(bytesPerSecond) * float64(time.Second)))
		if err := sleepUntil(ctx, due); err != nil {
			return err
		}
	}
}

func sleepUntil(ctx context.Context, at time.Time) error {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func encodeDamage(d storage.Damage) *holdfastv1.Damage {
	number, _, _ := strings.Cut(d.File, ".")
	segment, _ := strconv.ParseUint(number, 16, 64) // 0 for a file that is no segment
	out := &holdfastv1.Damage{Segment: segment, Offset: uint64(d.Offset), Reason: d.Reason}
	if d.Begin < d.End {
		out.BeginLsn, out.EndLsn = uint64(d.Begin), uint64(d.End)
	}
	return out
}
