package main

// lane is one way in which the tests can notice a fault, cheapest first.
type lane struct {
	name string
	args []string // of go test
	env  []string
}

func lanes(seeds string) []lane {
	return []lane{
		{"oracles", []string{"./wal"}, nil},
		{"transcripts", []string{"-run", "TestTranscripts|TestElection", "./consensus"}, nil},
		{"walks", []string{"-run", "TestWalks", "./consensus"}, nil},
		{"simulator", []string{"-run", "TestSeeds", "./sim"}, []string{"HOLDFAST_SIM_SEEDS=" + seeds, "HOLDFAST_SIM_SHORTEN=0"}},
		{"stories", []string{"-run", "TestStory", "./sim"}, nil},
		{"rooms", []string{"./flush", "./storage/..."}, nil},
		{"exhaustive", []string{"-run", "TestExhaustive", "./consensus"}, nil},
	}
}
