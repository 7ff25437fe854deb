package response

import (
	"math/bits"
	"strconv"
	"time"

	"github.com/sluice-proxy/sluice/filter/config"
)

// Template is a config.Response made ready to answer with. It never changes.
type Template struct {
	// Families are the headers that go on admitted responses and refusals.
	Families config.HeaderFamilies

	status      int
	contentType string
	isJSON      bool
	body        body
	extra       [][2]string // none that the filter sends itself; package config sees to that
	jitter      time.Duration
}

// Answer is a local response.
type Answer struct {
	Status  int
	Headers [][2]string // names in lower case; none twice
	Body    []byte
}

// Compile makes a Template of a config that has been checked.
func Compile(c *config.Response) *Template {
	mediaType := parseMediaType(c.ContentType)
	t := &Template{
		Families:    c.RateLimitHeaders,
		status:      c.Status,
		contentType: c.ContentType,
		isJSON:      holdsJSON(mediaType),
		extra:       c.Headers,
		jitter:      c.RetryAfterJitter,
	}
	if c.Body != nil {
		t.body = parseBody(*c.Body)
	} else {
		t.body = defaultBody(mediaType, c.Status)
	}
	return t
}

// HasJitter says whether refusals need a Jitter, and with it random bits.
func (t *Template) HasJitter() bool { return t.jitter > 0 }

// Jitter turns 64 random bits into a Refusal's Jitter: each duration from 0 to
// the configured one, both included, is as likely as any other.
func (t *Template) Jitter(random uint64) time.Duration {
	// Multiplying spreads the bits over the range evenly (D. Lemire, "Fast random
	// integer generation in an interval", 2019); the few values that 2^64 bits
	// give once more than the others are not worth a second draw.
	high, _ := bits.Mul64(random, uint64(t.jitter)+1)
	return time.Duration(high)
}

// Refuse words a refusal. What answers a gRPC request is worded as Envoy needs
// it, which makes the body the grpc-message and sets the content type itself: the
// body is the plain sentence, whatever the config says.
func (t *Template) Refuse(r *Refusal, isGRPC bool) Answer {
	a := Answer{Status: t.status, Headers: make([][2]string, 0, 16)}
	if isGRPC {
		a.Body = []byte(r.Message())
	} else {
		a.Body = t.body.fill(r, t.isJSON)
		a.add(contentTypeHeader, t.contentType)
	}
	a.add(RateLimitedHeader, "true")
	if seconds, ok := r.RetrySeconds(); ok {
		a.addNumber(RetryAfterHeader, seconds)
	}
	if !r.MissingKey {
		a.addFamilies(t.Families, r)
	}
	a.Headers = append(a.Headers, t.extra...)
	return a
}

func (a *Answer) addFamilies(families config.HeaderFamilies, r *Refusal) {
	if families&config.RateLimit != 0 {
		a.addThree(LimitHeader, RemainingHeader, ResetHeader, r)
	}
	if families&config.Draft != 0 {
		a.add(DraftPolicyHeader, string(AppendDraftPolicy(nil, r.Shares)))
		a.add(DraftHeader, string(AppendDraft(nil, r.Shares)))
	}
	if families&config.XRateLimit != 0 {
		a.addThree(XLimitHeader, XRemainingHeader, XResetHeader, r)
	}
}

func (a *Answer) addThree(limit, remaining, reset string, r *Refusal) {
	a.addNumber(limit, r.Limit)
	a.addNumber(remaining, r.Remaining)
	if r.Reset >= 0 {
		a.addNumber(reset, Seconds(r.Reset))
	}
}

func (a *Answer) add(name, value string) {
	a.Headers = append(a.Headers, [2]string{name, value})
}

func (a *Answer) addNumber(name string, n int64) {
	a.add(name, strconv.FormatInt(n, 10))
}
