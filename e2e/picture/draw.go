package main

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"
)

// The layout, in pixels. A row has a lane for the refused and one beneath it on
// which the admitted go on to the upstream; in a queue there is one in between,
// on which they begin to wait.
const (
	width   = 860
	left    = 24
	perS    = 132 // a second of the time axis
	seconds = 6
	top     = 62 // the arrivals' text
	dot     = 2.9
	arm     = 2.6 // half a cross
)

//go:embed bursts.svg.tmpl
var source string

var svg = template.Must(template.New("bursts.svg").Funcs(template.FuncMap{"x": x, "sum": sum}).Parse(source))

// x returns where a moment is on the time axis.
func x(at time.Duration) string { return number(position(at)) }

func position(at time.Duration) float64 { return left + at.Seconds()*perS }

// number spells a coordinate in the shortest way, to a hundredth of a pixel.
func number(f float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", f), "0"), ".")
}

func sum(a, b int) int { return a + b }

// picture is what the template is given.
type picture struct {
	Width, Height, Top int
	Left, Right        int
	Bottom             int // where the time axis is
	Dot                float64
	Summary            string
	Arrivals           []time.Duration
	BurstWidth         int
	BandHeight         int
	TrickleText        string
	LegendCross        string
	Ticks              []time.Duration
	Rows               []drawnRow
}

// drawnRow is a row with its marks.
type drawnRow struct {
	row
	ID, Counts        string
	Text              int // vertical, as are the lanes
	Refused, Wait, Go int
	Edges             []time.Duration
	Crosses, Waits    []string // paths
	Waiting           []time.Duration
	Departures        []time.Duration
}

// draw writes the picture.
func draw(out io.Writer, rows []row) error {
	p := picture{
		Width: width, Top: top, Left: left, Right: width - left, Dot: dot,
		Arrivals: arrivals(), LegendCross: cross(726, 24),
		BurstWidth: perS + 8, TrickleText: x(trickle - 100*time.Millisecond),
	}
	for s := range time.Duration(seconds + 1) {
		p.Ticks = append(p.Ticks, s*time.Second)
	}
	y := top + 56
	var summary []string
	for _, r := range rows {
		lanes := 16
		if r.Queue {
			lanes = 46
		}
		p.Rows = append(p.Rows, drawRow(r, y, lanes))
		summary = append(summary, r.Name+": "+r.counts())
		y += lanes + 46
	}
	p.Bottom = y - 14
	p.Height = p.Bottom + 34
	p.BandHeight = p.Bottom - top + 20
	p.Summary = strings.Join(summary, "; ")
	return svg.Execute(out, p)
}

// drawRow draws a row whose text is at y.
func drawRow(r row, y, lanes int) drawnRow {
	d := drawnRow{
		row: r, ID: strings.ReplaceAll(r.Name, ", ", "_"), Counts: r.counts(),
		Text: y, Refused: y + 16, Wait: y + 28, Go: y + 16 + lanes,
	}
	for _, q := range r.requests {
		if !q.admitted {
			d.Crosses = append(d.Crosses, cross(position(q.at), float64(d.Refused)))
			continue
		}
		departure := q.at + q.wait
		d.Departures = append(d.Departures, departure)
		if q.wait > 0 {
			d.Waiting = append(d.Waiting, q.at)
			d.Waits = append(d.Waits, fmt.Sprintf("M%s %dL%s %d", x(q.at), d.Wait, x(departure), d.Go))
		}
	}
	for edge := firstEdge; r.Windows && edge <= seconds*time.Second; edge += period {
		d.Edges = append(d.Edges, edge)
	}
	return d
}

// cross returns the path of a cross around a point.
func cross(x, y float64) string {
	return fmt.Sprintf("M%s %sl%[3]v %[3]vm0 -%[3]vl-%[3]v %[3]v", number(x-arm), number(y-arm), 2*arm)
}

// counts says what becomes of a row's requests.
func (r row) counts() string {
	var admitted, waited, refused int
	for _, q := range r.requests {
		switch {
		case !q.admitted:
			refused++
		case q.wait > 0:
			waited++
			admitted++
		default:
			admitted++
		}
	}
	if r.Queue {
		return fmt.Sprintf("%d admitted, %d of them after a wait, %d refused", admitted, waited, refused)
	}
	return fmt.Sprintf("%d admitted, %d refused", admitted, refused)
}
