package wal

import "hash/crc32"

// RequestBytesMax is the most WAL that one append may carry: 512 KiB. It is
// smaller than the smallest segment's data space, so that a request is never
// split between two segments.
const RequestBytesMax = 512 << 10

// PropertiesBytesMax bounds the opaque properties that travel with an election: 16 KiB.
const PropertiesBytesMax = 16 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Chunk is a run of WAL bytes, [Begin, End()). CRC is the CRC-32C of Data as
// its writer computed it; it travels with the bytes to the disk and back.
type Chunk struct {
	Begin LSN
	CRC   uint32
	Data  []byte
}

// End is the position behind the chunk's last byte.
func (c Chunk) End() LSN { return c.Begin + LSN(len(c.Data)) }

// Intact reports whether the data still has its checksum.
func (c Chunk) Intact() bool { return Checksum(c.Data) == c.CRC }

// Checksum is CRC-32C (Castagnoli), the only checksum of WAL bytes in Holdfast.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }
