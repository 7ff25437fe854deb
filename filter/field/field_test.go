package field

import (
	"testing"
)

func TestReadingFieldsDoesNotAllocate(t *testing.T) {
	buffer := make([]byte, 0, 100)
	line, path, lines := []byte(`a=b; sid="c"`), []byte("/?a=b&k%65y=c+%41"), []byte("Bearer abc,Bearer def")
	if n := testing.AllocsPerRun(100, func() {
		Cookie(line, "sid")
		AppendQuery(buffer, path, "key")
		Bearer(lines)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
