package proto

import (
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// EncodeHealth converts a health; one that is not known becomes HEALTH_UNSPECIFIED.
func EncodeHealth(h wal.Health) holdfastv1.Health {
	switch h {
	case wal.Healthy:
		return holdfastv1.Health_HEALTH_OK
	case wal.Poisoned:
		return holdfastv1.Health_HEALTH_POISONED
	case wal.Quarantined:
		return holdfastv1.Health_HEALTH_QUARANTINED
	case wal.Lost:
		return holdfastv1.Health_HEALTH_LOST
	}
	return holdfastv1.Health_HEALTH_UNSPECIFIED
}

// DecodeHealth refuses a health that it does not know: to take it for OK could
// only be wrong.
func DecodeHealth(h holdfastv1.Health) (wal.Health, error) {
	switch h {
	case holdfastv1.Health_HEALTH_OK:
		return wal.Healthy, nil
	case holdfastv1.Health_HEALTH_POISONED:
		return wal.Poisoned, nil
	case holdfastv1.Health_HEALTH_QUARANTINED:
		return wal.Quarantined, nil
	case holdfastv1.Health_HEALTH_LOST:
		return wal.Lost, nil
	}
	return 0, invalid("health is %v, expected one of OK, POISONED, QUARANTINED and LOST", h)
}
