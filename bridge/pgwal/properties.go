package pgwal

import (
	"encoding/binary"
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Properties are what a Holdfast log remembers of the PostgreSQL cluster that
// writes it. They travel with every election, as opaque bytes, and are durable
// together with the term.
type Properties struct {
	SystemID     uint64 // the cluster's system identifier
	Segment      SegmentBytes
	VersionMajor int // server_version_num / 10000: 15

	// Ancestry is the cluster's TLI with its ancestors. It may name a TLI that
	// begins beyond the log's end: nothing of it has been stored yet.
	Ancestry Ancestry

	// Fenced is set by an election that only shut writers out and made the log's
	// tail settled. Every bridge that attaches clears it.
	Fenced bool

	// History is the newest TLI's history file as PostgreSQL wrote it, empty on
	// TLI 1. The files of its ancestors are contained in it.
	History []byte
}

// Encoding, version 1, big-endian:
//
//	"HFPG" | version u8 | flags u8 | versionMajor u16 | systemID u64 | segment u32
//	| TLIs u16 | { tli u32 | begin u64 } ... | history file, to the end
//
// Flags: 1 = fenced. A reader refuses versions and flags it does not know.
const (
	propertiesMagic   = "HFPG"
	propertiesVersion = 1
	propertiesFixed   = 4 + 1 + 1 + 2 + 8 + 4 + 2
	branchBytes       = 12
	flagFenced        = 1
)

// Encode returns the properties as bytes, at most wal.PropertiesBytesMax. When
// the history file does not fit, a shorter one without reasons takes its place:
// the positions in it are what counts.
func (p Properties) Encode() ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	fixed := propertiesFixed + branchBytes*len(p.Ancestry)
	history := p.History
	if fixed+len(history) > wal.PropertiesBytesMax {
		history = FormatHistory(p.Ancestry)
	}
	if fixed+len(history) > wal.PropertiesBytesMax {
		history = nil // it can be written again from the ancestry
	}
	if fixed > wal.PropertiesBytesMax {
		return nil, fmt.Errorf("%d timelines are more than the log's properties can hold", len(p.Ancestry))
	}
	b := make([]byte, 0, fixed+len(history))
	b = append(b, propertiesMagic...)
	flags := byte(0)
	if p.Fenced {
		flags |= flagFenced
	}
	b = append(b, propertiesVersion, flags)
	b = binary.BigEndian.AppendUint16(b, uint16(p.VersionMajor))
	b = binary.BigEndian.AppendUint64(b, p.SystemID)
	b = binary.BigEndian.AppendUint32(b, uint32(p.Segment))
	b = binary.BigEndian.AppendUint16(b, uint16(len(p.Ancestry)))
	for _, x := range p.Ancestry {
		b = binary.BigEndian.AppendUint32(b, uint32(x.TLI))
		b = binary.BigEndian.AppendUint64(b, uint64(x.Begin))
	}
	return append(b, history...), nil
}

// DecodeProperties is the inverse of Encode. Bytes that are no properties of a
// PostgreSQL log, or of a newer version, are an error; so are empty ones.
func DecodeProperties(b []byte) (Properties, error) {
	if len(b) < propertiesFixed || string(b[:4]) != propertiesMagic {
		return Properties{}, fmt.Errorf("the log's properties (%d bytes) are not those of a PostgreSQL cluster: was it written by another program?", len(b))
	}
	if b[4] != propertiesVersion || b[5]&^flagFenced != 0 {
		return Properties{}, fmt.Errorf("the log's properties have version %d, flags %#x; this program knows version %d: use a newer one", b[4], b[5], propertiesVersion)
	}
	p := Properties{
		Fenced:       b[5]&flagFenced != 0,
		VersionMajor: int(binary.BigEndian.Uint16(b[6:])),
		SystemID:     binary.BigEndian.Uint64(b[8:]),
		Segment:      SegmentBytes(binary.BigEndian.Uint32(b[16:])),
	}
	n := int(binary.BigEndian.Uint16(b[20:]))
	b = b[propertiesFixed:]
	if len(b) < n*branchBytes {
		return Properties{}, fmt.Errorf("the log's properties are cut short: %d timelines do not fit into %d bytes", n, len(b))
	}
	p.Ancestry = make(Ancestry, n)
	for i := range p.Ancestry {
		p.Ancestry[i] = Branch{TLI(binary.BigEndian.Uint32(b)), wal.LSN(binary.BigEndian.Uint64(b[4:]))}
		b = b[branchBytes:]
	}
	if len(b) > 0 {
		p.History = append([]byte(nil), b...)
	}
	return p, p.Validate()
}

// Validate reports the first field that no cluster can have.
func (p Properties) Validate() error {
	if p.SystemID == 0 {
		return fmt.Errorf("the log's properties have no system identifier")
	}
	if p.VersionMajor < 1 || p.VersionMajor > 1<<16-1 {
		return fmt.Errorf("the log's properties name PostgreSQL version %d", p.VersionMajor)
	}
	if err := p.Segment.Validate(); err != nil {
		return err
	}
	return p.Ancestry.Validate()
}

// HistoryFile returns the content of tli's history file. It answers for every
// TLI from 2 to the newest: for an ancestor with its own file, for a number
// that was skipped with the file of the next newer ancestor, because PostgreSQL
// looks for the newest TLI by counting up until a file is missing.
func (p Properties) HistoryFile(tli TLI) ([]byte, bool) {
	if tli < 2 || tli > p.Ancestry.Last() {
		return nil, false
	}
	i := 0
	for p.Ancestry[i].TLI < tli {
		i++
	}
	content := p.History
	if p.Ancestry[i].TLI != p.Ancestry.Last() {
		content = ancestorHistory(p.History, p.Ancestry[i].TLI)
	}
	if len(content) == 0 {
		content = FormatHistory(p.Ancestry[:i+1])
	}
	return content, true
}
