package algorithms

// Tokens returns what a stock holds at now, below 0 for credit.
func (l *Lease) Tokens(s State, now Time) int64 {
	k := l.load(&s, now.Mono)
	return k.tokens
}
