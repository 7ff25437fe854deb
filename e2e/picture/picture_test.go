package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func drawn(t *testing.T) []byte {
	t.Helper()
	rows, err := decideAll()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := draw(&out, rows); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestThePictureInTheDocsIsTheOneThatIsDrawn(t *testing.T) {
	kept, err := os.ReadFile("../../docs/bursts.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, drawn(t)) {
		t.Error("docs/bursts.svg is an older picture; run `make picture`")
	}
}

func TestThePictureIsSmallAndPlainXML(t *testing.T) {
	picture := drawn(t)
	if len(picture) > 60_000 {
		t.Errorf("%d bytes, want at most 60000", len(picture))
	}
	found := map[string]int{}
	for decoder := xml.NewDecoder(bytes.NewReader(picture)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if element, ok := token.(xml.StartElement); ok {
			found[element.Name.Local]++
		}
	}
	if found["title"] != 1 || found["desc"] != 1 || found["script"] != 0 {
		t.Errorf("want a title, a desc and no script, got %v", found)
	}
	if !bytes.Contains(picture, []byte("(prefers-color-scheme: dark)")) {
		t.Error("no colours for dark mode")
	}
}

// mark is an element of the picture.
type mark struct {
	Class string `xml:"class,attr"`
	CX    string `xml:"cx,attr"`
	D     string `xml:"d,attr"`
}

// group is a row of the picture.
type group struct {
	ID      string   `xml:"id,attr"`
	Circles []mark   `xml:"circle"`
	Paths   []mark   `xml:"path"`
	Texts   []string `xml:"text"`
}

// groups returns the rows as somebody sees them who has nothing but the picture.
func groups(t *testing.T) map[string]group {
	t.Helper()
	var picture struct {
		Groups []group `xml:"g"`
	}
	if err := xml.Unmarshal(drawn(t), &picture); err != nil {
		t.Fatal(err)
	}
	byID := map[string]group{}
	for _, g := range picture.Groups {
		byID[g.ID] = g
	}
	return byID
}

// milliseconds reads a place on the time axis.
func milliseconds(t *testing.T, x string) int {
	t.Helper()
	f, err := strconv.ParseFloat(x, 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(math.Round((f - left) / perS * 1000))
}

// circles returns the moments of a row's circles of one class.
func (g group) circles(t *testing.T, class string) []int {
	var at []int
	for _, m := range g.Circles {
		if m.Class == class {
			at = append(at, milliseconds(t, m.CX))
		}
	}
	return at
}

// crosses returns the moments of a row's crosses, whose paths begin at the
// upper left.
func (g group) crosses(t *testing.T) []int {
	var at []int
	for _, m := range g.Paths {
		if m.Class == "refused" {
			x, err := strconv.ParseFloat(strings.Fields(m.D[1:])[0], 64)
			if err != nil {
				t.Fatal(err)
			}
			at = append(at, milliseconds(t, number(x+arm)))
		}
	}
	return at
}

// waits returns from when to when each of a row's lines goes.
func (g group) waits(t *testing.T) [][2]int {
	var waits [][2]int
	for _, m := range g.Paths {
		if m.Class == "wait" {
			from, to, _ := strings.Cut(m.D[1:], "L")
			waits = append(waits, [2]int{
				milliseconds(t, strings.Fields(from)[0]), milliseconds(t, strings.Fields(to)[0])})
		}
	}
	return waits
}

// came is when the requests come, in ms.
var came = []int{
	0, 50, 100, 150, 200, 250, 300, 350, 400, 450,
	500, 550, 600, 650, 700, 750, 800, 850, 900, 950,
	1800, 2600, 3400, 4200, 5000, 5800,
}

func TestTheRowsShowWhatTheAlgorithmsAreDefinedToDo(t *testing.T) {
	bucket := []int{0, 50, 100, 150, 200, // a full bucket
		500, // the first unit to come back
		1800, 2600, 3400, 4200, 5000, 5800}
	rows := groups(t)
	for _, c := range []struct {
		id       string
		admitted []int
		counts   string
	}{
		{"token_bucket", bucket, "12 admitted, 14 refused"},
		{"gcra", bucket, "12 admitted, 14 refused"},
		{"leaky_bucket_meter", bucket, "12 admitted, 14 refused"},
		{"fixed_window", []int{
			0, 50, 100, 150, 200, // the window that ends at 500
			500, 550, 600, 650, 700, // the one that ends at 3000
			3400, 4200, 5000, 5800,
		}, "14 admitted, 12 refused"},
		{"sliding_window", []int{
			0, 50, 100, 150, 200,
			// A unit of these 5 has faded at 1000, which at 950 is not yet.
			1800, 2600, 3400, 4200, 5000, 5800,
		}, "11 admitted, 15 refused"},
	} {
		t.Run(c.id, func(t *testing.T) {
			row := rows[c.id]
			if got := row.circles(t, "admitted"); !slices.Equal(got, c.admitted) {
				t.Errorf("admitted at %v, want %v", got, c.admitted)
			}
			if got, want := row.crosses(t), without(came, c.admitted); !slices.Equal(got, want) {
				t.Errorf("refused at %v, want %v", got, want)
			}
			if waits := row.waits(t); len(waits) > 0 {
				t.Errorf("nobody waits here, but %v", waits)
			}
			if !slices.Contains(row.Texts, c.counts) {
				t.Errorf("it says %q, want %q", row.Texts, c.counts)
			}
		})
	}
}

func TestTheQueueShowsWhoWaitsForWhat(t *testing.T) {
	// One leaves every 500 ms. The first finds the queue idle, five more wait; the
	// next one comes when the first of those leaves.
	want := [][2]int{
		{50, 500}, {100, 1000}, {150, 1500}, {200, 2000}, {250, 2500}, {500, 3000},
		{1800, 3500}, {2600, 4000}, {3400, 4500}, {4200, 5000}, {5000, 5500}, {5800, 6000},
	}
	queue := groups(t)["leaky_bucket_queue"]
	if got := queue.waits(t); !slices.Equal(got, want) {
		t.Errorf("waits are %v, want %v", got, want)
	}
	arrived, departed := []int{0}, []int{0}
	for _, w := range want {
		arrived, departed = append(arrived, w[0]), append(departed, w[1])
	}
	if got := queue.circles(t, "waiting"); !slices.Equal(got, arrived[1:]) {
		t.Errorf("begin to wait at %v, want %v", got, arrived[1:])
	}
	if got := queue.circles(t, "admitted"); !slices.Equal(got, departed) {
		t.Errorf("go on at %v, want %v", got, departed)
	}
	if got, want := queue.crosses(t), without(came, arrived); !slices.Equal(got, want) {
		t.Errorf("refused at %v, want %v", got, want)
	}
	if counts := "13 admitted, 12 of them after a wait, 13 refused"; !slices.Contains(queue.Texts, counts) {
		t.Errorf("it says %q, want %q", queue.Texts, counts)
	}
}

func TestTheSameRequestsComeToEachRow(t *testing.T) {
	rows := groups(t)
	if got := rows["arrivals"].circles(t, "came"); !slices.Equal(got, came) {
		t.Errorf("arrivals at %v, want %v", got, came)
	}
	if latest := seconds * 1000; slices.Max(came) > latest {
		t.Errorf("requests come after the time axis ends, at %d ms", latest)
	}
}

func TestEdgesAreDrawnWhereWindowsEnd(t *testing.T) {
	for _, id := range []string{"fixed_window", "sliding_window"} {
		var at []int
		for _, m := range groups(t)[id].Paths {
			if m.Class == "edge" {
				at = append(at, milliseconds(t, strings.Fields(m.D[1:])[0]))
			}
		}
		if want := []int{500, 3000, 5500}; !slices.Equal(at, want) {
			t.Errorf("%s: edges at %v, want %v", id, at, want)
		}
	}
}

// without returns those of all that are not among some.
func without(all, some []int) []int {
	var rest []int
	for _, n := range all {
		if !slices.Contains(some, n) {
			rest = append(rest, n)
		}
	}
	return rest
}
