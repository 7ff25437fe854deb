// Command picture draws one burst of requests through each algorithm, as an SVG
// on its standard output. `make picture` writes docs/bursts.svg with it. It
// imports nothing but the standard library and the algorithms.
package main

import (
	"fmt"
	"os"
)

func main() {
	rows, err := decideAll()
	if err == nil {
		err = draw(os.Stdout, rows)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}
