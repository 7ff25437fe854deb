package envoytest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Tally counts answers by their status.
type Tally map[int]int

// AtOnce calls send for 0 to n-1, each in a goroutine of its own, none before
// all are there, and counts the answers. It returns the first error besides, if
// any request had none.
func AtOnce(n int, send func(i int) (Response, error)) (Tally, error) {
	var (
		start    = make(chan struct{})
		statuses = make([]int, n)
		errs     = make([]error, n)
		ready    sync.WaitGroup
		done     sync.WaitGroup
	)
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			response, err := send(i)
			statuses[i], errs[i] = response.Status, err
		})
	}
	ready.Wait()
	close(start)
	done.Wait()

	tally := Tally{}
	var failed error
	for i := range n {
		if errs[i] == nil {
			tally[statuses[i]]++
		} else if failed == nil {
			failed = errs[i]
		}
	}
	return tally, failed
}

// floodConns is how many connections a Flood uses: enough to reach every worker
// and to keep each of them busy.
const floodConns = 32

// Flood sends n requests to addr as fast as it can, over a few connections, and
// counts the answers. The i-th request is a GET of "/" with the header line that
// header returns for i. A request costs Go's HTTP client more than it costs
// Envoy; here it costs little, so that a million take seconds.
func Flood(addr string, n int, header func(i int) string) (Tally, error) {
	var (
		tallies [floodConns]Tally
		errs    [floodConns]error
		done    sync.WaitGroup
	)
	for c := range floodConns {
		done.Go(func() {
			tallies[c], errs[c] = oneByOne(addr, n*c/floodConns, n*(c+1)/floodConns, header)
		})
	}
	done.Wait()
	total := Tally{}
	for _, tally := range tallies {
		for status, count := range tally {
			total[status] += count
		}
	}
	return total, errors.Join(errs[:]...)
}

// oneByOne sends the requests from to to-1 over one connection, each when the
// one before it has been answered.
func oneByOne(addr string, from, to int, header func(i int) string) (Tally, error) {
	tally := Tally{}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return tally, err
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	var request []byte
	for i := from; i < to; i++ {
		request = fmt.Appendf(request[:0], "GET / HTTP/1.1\r\nhost: flood\r\n%s\r\n\r\n", header(i))
		conn.SetDeadline(time.Now().Add(patience))
		if _, err := conn.Write(request); err != nil {
			return tally, err
		}
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			return tally, err
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return tally, err
		}
		tally[response.StatusCode]++
	}
	return tally, nil
}
